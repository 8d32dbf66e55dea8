//! A pool of threads that run one job at a time, together with the caller.
//!
//! Workers spin for a moment before they sleep, since a training step is hundreds of jobs of a few microseconds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A borrowed job: `f(worker)`, valid until every worker has said it is done.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));
// SAFETY: `run` does not return before the last worker is done with the job, which is `Sync`.
unsafe impl Send for Job {}

struct Shared {
    /// Rises by one for each job.
    ticket: AtomicUsize,
    pending: AtomicUsize,
    stop: AtomicBool,
    panicked: AtomicBool,
    slot: Mutex<Option<Job>>,
    wake: Condvar,
}

pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One job at a time.
    turn: Mutex<()>,
}

/// Rounds of spinning before a worker sleeps: some tens of microseconds.
const SPINS: usize = 20_000;

impl Pool {
    /// A pool in which `threads` threads work, the caller among them.
    pub fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared {
            ticket: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            slot: Mutex::new(None),
            wake: Condvar::new(),
        });
        let workers = (1..threads.max(1))
            .filter_map(|i| {
                let shared = shared.clone();
                std::thread::Builder::new()
                    .name(format!("ulpian-cpu-{i}"))
                    .spawn(move || work(&shared, i))
                    .ok()
            })
            .collect();
        Pool { shared, workers, turn: Mutex::new(()) }
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `f(0..threads)`, each on its own thread, and waits for all. False if one of them panicked.
    pub fn run(&self, f: &(dyn Fn(usize) + Sync)) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let s = &self.shared;
        if !self.workers.is_empty() {
            // SAFETY: only the lifetime is forgotten; the wait below outlasts every use.
            let job = Job(unsafe {
                std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync + 'static)>(
                    f,
                )
            });
            s.pending.store(self.workers.len(), Ordering::Relaxed);
            let mut slot = s.slot.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = Some(job);
            s.ticket.fetch_add(1, Ordering::Release);
            drop(slot);
            s.wake.notify_all();
        }
        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(0))).is_ok();
        let mut spins = 0;
        while s.pending.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        own && !s.panicked.swap(false, Ordering::Relaxed)
    }
}

fn work(s: &Shared, me: usize) {
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while s.ticket.load(Ordering::Acquire) == seen && spins < SPINS && !s.stop.load(Ordering::Relaxed) {
            spins += 1;
            std::hint::spin_loop();
        }
        let job = {
            let mut slot = s.slot.lock().unwrap_or_else(PoisonError::into_inner);
            while s.ticket.load(Ordering::Acquire) == seen && !s.stop.load(Ordering::Relaxed) {
                slot = s.wake.wait(slot).unwrap_or_else(PoisonError::into_inner);
            }
            if s.stop.load(Ordering::Relaxed) {
                return;
            }
            seen = s.ticket.load(Ordering::Acquire);
            *slot
        };
        if let Some(Job(f)) = job {
            // SAFETY: the caller of `run` waits for `pending` to reach zero, so `f` is alive.
            let f = unsafe { &*f };
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(me))).is_err() {
                s.panicked.store(true, Ordering::Relaxed);
            }
        }
        s.pending.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Taken so that no worker can be between its look at `stop` and its sleep.
        drop(self.shared.slot.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
        for w in self.workers.drain(..) {
            // A worker catches its panics, so there is nothing to learn from the result.
            let _ = w.join();
        }
    }
}
