//! Training: the same bits whatever runs it, and a loss that falls.

use std::sync::Arc;
use ulpian::data::{Dataset, digits};
use ulpian::device::{CpuOptions, Isa, OpenOptions, open_with};
use ulpian::io::{HostTensor, Weights, safetensors, weights_sha256};
use ulpian::optim::{Adam, AdamW, Optimizer, Sgd};
use ulpian::train::{Epoch, Model, Settings, Trainer};
use ulpian::{Device, Dtype, Error, Tensor, grad};

fn cpu(threads: usize, isa: Option<Isa>) -> Arc<dyn Device> {
    let cpu = CpuOptions { threads: Some(threads), isa };
    open_with("cpu", &OpenOptions { cpu, vulkan: None }).unwrap()
}
fn train<O: Optimizer>(
    device: &Arc<dyn Device>,
    data: Dataset,
    settings: Settings<O>,
    epochs: usize,
) -> (Weights, Vec<Epoch>) {
    let mut t = Trainer::new(device, data, settings).unwrap();
    let done = (0..epochs).map(|_| t.epoch(&mut |_, _| {}).unwrap()).collect();
    (t.weights().unwrap(), done)
}
/// The first images of the digits, so that a test ends soon.
fn some_digits(train: usize, test: usize) -> Dataset {
    let mut d = digits().unwrap();
    let pixels = d.pixels();
    d.train_images.truncate(train * pixels);
    d.train_labels.truncate(train);
    d.test_images.truncate(test * pixels);
    d.test_labels.truncate(test);
    d
}

#[test]
fn digits_train_to_the_same_weights_on_one_and_two_threads() {
    let settings = || Settings { model: Model::Mlp { hidden: 32 }, ..Settings::default() };
    let (one, epochs) = train(&cpu(1, None), digits().unwrap(), settings(), 2);
    let (two, again) = train(&cpu(2, None), digits().unwrap(), settings(), 2);
    assert_eq!(weights_sha256(&one), weights_sha256(&two));
    assert_eq!(epochs, again);
    assert!(epochs[1].train.loss < epochs[0].train.loss, "{epochs:?}");
    assert!(epochs[1].test.accuracy > 0.8, "{epochs:?}");
}

#[test]
fn the_instruction_set_does_not_show_in_the_weights() {
    let settings = || Settings { model: Model::Cnn, batch: 16, ..Settings::default() };
    // 40 images in batches of 16: the last step has 8.
    let run = |isa| train(&cpu(2, isa), some_digits(40, 10), settings(), 1);
    let (best, epochs) = run(None);
    let (scalar, again) = run(Some(Isa::Scalar));
    assert_eq!(weights_sha256(&best), weights_sha256(&scalar));
    assert_eq!(epochs, again);
}

#[test]
fn seeds_matter_and_weights_come_back() {
    let device = cpu(1, None);
    let settings = |seed| Settings { model: Model::Mlp { hidden: 8 }, seed, ..Settings::default() };
    let (a, _) = train(&device, some_digits(64, 8), settings(1), 1);
    let (b, _) = train(&device, some_digits(64, 8), settings(2), 1);
    assert_ne!(weights_sha256(&a), weights_sha256(&b));
    let mut t = Trainer::new(&device, some_digits(64, 8), settings(2)).unwrap();
    t.set_weights(&a).unwrap();
    assert_eq!(t.weights().unwrap(), a);
    let mut lacking = a.clone();
    lacking.remove("fc1.bias");
    assert!(t.set_weights(&lacking).unwrap_err().to_string().contains("fc1.bias"));
}

#[test]
fn a_checkpoint_holds_the_weights_of_its_epoch() {
    let path = std::env::temp_dir().join(format!("ulpian-checkpoint-{}.safetensors", std::process::id()));
    let settings =
        Settings { model: Model::Mlp { hidden: 8 }, checkpoint: Some(path.clone()), ..Settings::default() };
    let (weights, _) = train(&cpu(1, None), some_digits(64, 8), settings, 2);
    let saved = safetensors::load(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(saved.unwrap(), weights);
}

#[test]
fn a_step_is_the_tensors_own_arithmetic() {
    // The compiled step against the same formulas through lazy tensors, bit for bit.
    let device = cpu(2, None);
    let data = some_digits(32, 8);
    let settings = Settings { model: Model::Mlp { hidden: 8 }, batch: 32, ..Settings::default() };
    let mut t = Trainer::new(&device, data.clone(), settings.clone()).unwrap();
    let before = t.weights().unwrap();
    let epoch = t.epoch(&mut |_, _| {}).unwrap();

    let p: Vec<Tensor> = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
        .iter()
        .map(|n| Tensor::from_host(&device, &before[*n]).unwrap())
        .collect();
    let batch = data.train().batch(&ulpian::data::permutation(0, 0, 32)).unwrap();
    let x = Tensor::from_slice(&device, &[32, 64], &batch.images).unwrap();
    let y = Tensor::from_slice(&device, &[32], &batch.labels).unwrap();
    let hidden = x.matmul(&p[0].t().unwrap()).unwrap().add(&p[1]).unwrap().relu().unwrap();
    let logits = hidden.matmul(&p[2].t().unwrap()).unwrap().add(&p[3]).unwrap();
    let loss = logits.cross_entropy(&y).unwrap();
    let g = grad(&loss, &p.iter().collect::<Vec<_>>()).unwrap();
    let after = t.weights().unwrap();
    for ((name, p), g) in ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"].iter().zip(&p).zip(&g) {
        let new = p.sub(&g.mul_scalar(settings.optimizer.lr).unwrap()).unwrap();
        assert_eq!(new.to_host().unwrap(), after[*name], "{name}");
    }
    assert_eq!(loss.dtype(), Dtype::F32);
    assert_eq!(f64::from(loss.item::<f32>().unwrap()), epoch.train.loss);
}

fn small<O>(optimizer: O) -> Settings<O> {
    Settings { model: Model::Mlp { hidden: 8 }, batch: 16, seed: 3, ..Settings::with(optimizer) }
}

#[test]
fn adam_trains_to_the_same_weights_on_one_and_two_threads() {
    let settings = || Settings {
        model: Model::Mlp { hidden: 32 },
        ..Settings::with(Adam { lr: 0.01, ..Adam::default() })
    };
    let (one, epochs) = train(&cpu(1, None), digits().unwrap(), settings(), 2);
    let (two, again) = train(&cpu(2, None), digits().unwrap(), settings(), 2);
    assert_eq!(weights_sha256(&one), weights_sha256(&two));
    assert_eq!(epochs, again);
    assert!(epochs[1].train.loss < epochs[0].train.loss, "{epochs:?}");
    assert!(epochs[1].test.accuracy > 0.7, "{epochs:?}");
}

/// A run broken off after each number of steps and taken up by a new trainer, through a file, against one that ran
/// through: weights, state and scores.
fn resumes<O: Optimizer + Clone>(name: &str, optimizer: O) {
    let device = cpu(2, None);
    // Five steps an epoch, the last of 6 images.
    let make = || Trainer::new(&device, some_digits(70, 20), small(optimizer.clone())).unwrap();
    let mut whole = make();
    let epochs: Vec<Epoch> = (0..2).map(|_| whole.epoch(&mut |_, _| {}).unwrap()).collect();
    whole.advance(2, &mut |_, _| {}).unwrap();
    let want = whole.snapshot().unwrap();
    let path = std::env::temp_dir().join(format!("ulpian-resume-{}-{name}.safetensors", std::process::id()));
    for broken_at in [0, 1, 3, 5, 6, 9] {
        let mut t = make();
        let mut scores = vec![];
        let mut left = broken_at;
        while left > 0 {
            left -= t.advance(left.min(5), &mut |_, _| {}).unwrap();
            if left > 0 || broken_at == 5 {
                scores.push(t.epoch(&mut |_, _| {}).unwrap());
            }
        }
        t.save(&path).unwrap();
        drop(t);
        let mut t = make();
        t.resume(&path).unwrap();
        while t.epochs() < 2 {
            scores.push(t.epoch(&mut |_, _| {}).unwrap());
        }
        t.advance(2, &mut |_, _| {}).unwrap();
        assert_eq!(t.snapshot().unwrap(), want, "{name} broken off after {broken_at} steps");
        assert_eq!(scores, epochs, "{name} broken off after {broken_at} steps");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_resumed_run_ends_in_the_bits_of_an_unbroken_one() {
    resumes("sgd", Sgd { lr: 0.1, momentum: 0.9, weight_decay: 1e-3 });
    resumes("plain", Sgd { lr: 0.1, momentum: 0.0, weight_decay: 0.0 });
    resumes("adam", Adam::default());
    resumes("adamw", AdamW::default());
}

#[test]
fn a_snapshot_of_another_run_is_refused_and_changes_nothing() {
    let device = cpu(1, None);
    let make = |s: Settings<Adam>| Trainer::new(&device, some_digits(64, 8), s).unwrap();
    let mut t = make(small(Adam::default()));
    t.advance(2, &mut |_, _| {}).unwrap();
    let good = t.snapshot().unwrap();
    let mut other = make(small(Adam::default()));
    let before = other.snapshot().unwrap();
    let mut refused = |from: &Weights, what: &str| {
        let e = other.restore(from).unwrap_err();
        assert!(e.to_string().contains(what), "{e}");
        assert!(matches!(e, Error::Parameter { .. } | Error::Argument { .. }), "{e}");
        assert_eq!(other.snapshot().unwrap(), before);
    };
    for name in good.keys() {
        let mut lacking = good.clone();
        lacking.remove(name);
        refused(&lacking, name);
    }
    let mut odd = good.clone();
    odd.insert("trainer.position".into(), good["trainer.loss"].clone());
    refused(&odd, "trainer.position");
    let mut epochs = good["trainer.position"].bytes().to_vec();
    epochs[..8].fill(0xff);
    odd.insert("trainer.position".into(), HostTensor::new(Dtype::I64, vec![5], epochs).unwrap());
    refused(&odd, "trainer.position");
    let mut odd = good.clone();
    odd.insert("optimizer.adam.m.fc1.bias".into(), good["fc2.bias"].clone());
    refused(&odd, "optimizer.adam.m.fc1.bias");
    let seed = make(Settings { seed: 4, ..small(Adam::default()) }).snapshot().unwrap();
    refused(&seed, "seed");
    let batch = make(Settings { batch: 8, ..small(Adam::default()) }).snapshot().unwrap();
    refused(&batch, "batch");
    let sgd = Sgd { lr: 0.1, momentum: 0.9, weight_decay: 0.0 };
    let sgd = Trainer::new(&device, some_digits(64, 8), small(sgd)).unwrap().snapshot().unwrap();
    refused(&sgd, "optimizer.adam");
    assert!(
        Trainer::new(&device, some_digits(64, 8), small(Adam { beta2: 1.0, ..Adam::default() })).is_err()
    );
}

#[test]
fn data_sets_put_together_elsewhere_are_checked_before_they_train() {
    let device = cpu(1, None);
    type Spoil = (fn(&mut Dataset), &'static str);
    let spoilt: [Spoil; 9] = [
        (|d| d.train_images.truncate(100), "100 pixels are not 40 training images"),
        (|d| d.test_labels.truncate(9), "9 test images"),
        (|d| d.height = 9, "9x8"),
        (|d| (d.height, d.width) = (usize::MAX, 3), "training images"),
        (|d| d.width = 0, "8x0"),
        (|d| d.train_labels[3] = 99, "training label 99"),
        (|d| d.test_images[5] = 200, "test pixel value 200"),
        (|d| d.max_value = 0, "up to 0"),
        (|d| d.classes = 0, "0 classes"),
    ];
    for (spoil, words) in spoilt {
        let mut data = some_digits(40, 10);
        spoil(&mut data);
        let text = Trainer::new(&device, data, Settings::default()).unwrap_err().to_string();
        assert!(text.contains(words) && text.contains("data set"), "{text}");
    }
    let mut short = some_digits(40, 10);
    short.train_images.truncate(100);
    assert!(short.train().batch(&[0]).is_ok() && short.train().batch(&[1]).is_err());
}
