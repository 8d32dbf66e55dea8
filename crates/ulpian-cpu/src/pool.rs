//! A pool of threads that run one job at a time, together with the caller.
//!
//! Workers spin for a moment before they sleep, since a training step is hundreds of jobs of a few microseconds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A borrowed job: `f(worker)`, valid while it lies in the slot or a worker is inside it.
#[derive(Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));
// SAFETY: `run` takes the job out of the slot and waits for the workers inside it; the job is `Sync`.
unsafe impl Send for Job {}

struct Shared {
    /// Rises by one for each job.
    ticket: AtomicUsize,
    /// Workers inside the present job.
    active: AtomicUsize,
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
            active: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            slot: Mutex::new(None),
            wake: Condvar::new(),
        });
        // Without gaps, should the system have no more threads: what workers have of their own is found by number.
        let workers = (1..threads.max(1))
            .map_while(|i| {
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

    /// Calls `f(0)` here and `f(1..threads)` on those workers that wake up in time, and waits for them. The work is to
    /// be taken piece by piece: a worker that comes late (the machine is busy) is not waited for. False if a call
    /// panicked.
    pub fn run(&self, f: &(dyn Fn(usize) + Sync)) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let s = &self.shared;
        if !self.workers.is_empty() {
            // SAFETY: only the lifetime is forgotten; the slot is emptied and the workers waited for below.
            let job = Job(unsafe {
                std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync + 'static)>(
                    f,
                )
            });
            let mut slot = s.slot.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = Some(job);
            s.ticket.fetch_add(1, Ordering::Release);
            drop(slot);
            s.wake.notify_all();
        }
        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(0))).is_ok();
        if !self.workers.is_empty() {
            // No worker can enter from here on.
            *s.slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let mut spins = 0;
        while s.active.load(Ordering::Acquire) != 0 {
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
            if slot.is_some() {
                // Under the lock, so that `run` sees it once it has emptied the slot.
                s.active.fetch_add(1, Ordering::Relaxed);
            }
            *slot
        };
        if let Some(Job(f)) = job {
            // SAFETY: `run` waits for `active` to reach zero, so `f` is alive.
            let f = unsafe { &*f };
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(me))).is_err() {
                s.panicked.store(true, Ordering::Relaxed);
            }
            s.active.fetch_sub(1, Ordering::Release);
        }
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
