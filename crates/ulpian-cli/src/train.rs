//! `ulpian train`: trains a classifier on one device, or on all of them, and prints the weights' hash.

use crate::devices::options;
use crate::plot::{check_plot, loss_plot};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use ulpian::data::{Dataset, digits, fashion_mnist, permutation};
use ulpian::device::{best, open_with};
use ulpian::io::{check_target, safetensors, weights_sha256, write_atomic};
use ulpian::optim::Sgd;
use ulpian::train::{Model, Settings, Trainer};
use ulpian_kernel::device::Device;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DataName {
    /// 1,797 images of 8x8, inside the program.
    Digits,
    /// 70,000 images of 28x28, read from `--data`.
    FashionMnist,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModelName {
    /// pixels-128-10 with relu.
    Mlp,
    /// Two convolutions with pooling, then two linear layers.
    Cnn,
}

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long, value_enum, default_value = "digits")]
    dataset: DataName,
    /// Folder with the IDX or IDX.gz files of fashion-mnist.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "mlp")]
    model: ModelName,
    /// `cpu`, `vulkan:N`, or `all`: every device, hashes side by side. Default: the best one.
    #[arg(long)]
    device: Option<String>,
    /// Default: 30 for digits, 12 for fashion-mnist.
    #[arg(long)]
    epochs: Option<u64>,
    /// Images a step.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Of the first weights and the order of images.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// CPU threads. The result does not depend on them.
    #[arg(long)]
    threads: Option<usize>,
    /// Learning rate.
    #[arg(long, default_value_t = 0.1)]
    lr: f64,
    /// Default: 0.9 for digits, 0 for fashion-mnist.
    #[arg(long)]
    momentum: Option<f64>,
    /// Weights after every epoch, as safetensors.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Curve of the losses, as SVG.
    #[arg(long, value_name = "FILE", default_value = "loss.svg")]
    plot: PathBuf,
    /// Writes the first weights (initial.safetensors) and the order of images (order.u32) there, and trains from
    /// them: for the comparison with PyTorch.
    #[arg(long, value_name = "DIR")]
    peer_files: Option<PathBuf>,
}

struct Outcome {
    device: String,
    hash: String,
    accuracy: f64,
    losses: Vec<(f64, f64)>,
    test_losses: Vec<(f64, f64)>,
}

pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let data = match args.dataset {
        DataName::Digits if args.data.is_some() => {
            return Err("--data: the digits are inside the program; add --dataset fashion-mnist".into());
        }
        DataName::Digits => digits()?,
        DataName::FashionMnist => {
            let dir = args.data.as_deref().ok_or(
                "fashion-mnist is not inside the program: run scripts/fetch-fashion-mnist.sh DIR, then give --data DIR",
            )?;
            fashion_mnist(dir)?
        }
    };
    // Momentum pays on the few hundred steps that the digits give, and costs accuracy on the long run of the other.
    let (epochs, momentum) = match args.dataset {
        DataName::Digits => (30, 0.9),
        DataName::FashionMnist => (12, 0.0),
    };
    let (epochs, momentum) = (args.epochs.unwrap_or(epochs), args.momentum.unwrap_or(momentum));
    if args.threads == Some(0) {
        return Err("--threads 0: at least one thread is needed".into());
    }
    if epochs > 0 && args.save.as_deref().is_some_and(|s| same_file(s, &args.plot)) {
        let file = args.plot.display();
        return Err(format!("--save and --plot are both {file}: the curve would replace the weights").into());
    }
    // Before the work, not after.
    if epochs > 0 {
        check_plot(&args.plot)?;
    }
    if let Some(path) = &args.save {
        check_target(path)?;
    }
    let devices: Vec<Arc<dyn Device>> = match args.device.as_deref() {
        None => vec![best(&options(args.threads))?],
        Some("all") => {
            let (all, missing) = ulpian::devices(&options(args.threads));
            if let Some(e) = missing {
                eprintln!("no Vulkan devices: {e}");
            }
            all.iter().map(|d| open_with(&d.id, &options(args.threads))).collect::<Result<_, _>>()?
        }
        Some(id) => vec![open_with(id, &options(args.threads))?],
    };
    let mut outcomes = vec![];
    for device in &devices {
        outcomes.push(train(args, device, data.clone(), epochs, momentum)?);
    }
    let mut series = vec![];
    if let Some(first) = outcomes.first() {
        series.push(("training".to_string(), first.losses.clone()));
        series.push(("test".to_string(), first.test_losses.clone()));
    }
    let plotted = if epochs > 0 { loss_plot(&args.plot, "cross-entropy by epoch", &series) } else { Ok(()) };
    if epochs > 0 && plotted.is_ok() {
        println!("losses drawn in {}", args.plot.display());
    }
    let same = outcomes.windows(2).all(|w| w[0].hash == w[1].hash);
    if outcomes.len() > 1 {
        for o in &outcomes {
            println!("{:<10} sha256:{} accuracy {:.4}", o.device, o.hash, o.accuracy);
        }
        println!("{}", if same { "all devices: the same bits" } else { "DEVICES DIFFER" });
    }
    if let Some(o) = outcomes.first() {
        println!("weights sha256:{} accuracy {:.4}", o.hash, o.accuracy);
    }
    // After the hash, which a full disk must not cost.
    plotted?;
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether both names lead to one file, there already or not.
fn same_file(a: &Path, b: &Path) -> bool {
    let place = |p: &Path| {
        p.canonicalize().or_else(|_| {
            let folder = p.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
            folder.canonicalize().map(|f| f.join(p.file_name().unwrap_or_default()))
        })
    };
    a == b || matches!((place(a), place(b)), (Ok(a), Ok(b)) if a == b)
}

fn train(
    args: &Args,
    device: &Arc<dyn Device>,
    data: Dataset,
    epochs: u64,
    momentum: f64,
) -> Result<Outcome, Box<dyn Error>> {
    let facts = device.facts();
    println!("device {}: {} ({})", facts.id, facts.name, facts.driver);
    let settings = Settings {
        model: match args.model {
            ModelName::Mlp => Model::Mlp { hidden: 128 },
            ModelName::Cnn => Model::Cnn,
        },
        batch: args.batch,
        optimizer: Sgd { lr: args.lr, momentum, ..Settings::default().optimizer },
        seed: args.seed,
        checkpoint: args.save.clone(),
        ..Settings::default()
    };
    let images = data.train().len() as u32;
    let mut trainer = Trainer::new(device, data, settings)?;
    if let Some(dir) = &args.peer_files {
        peer_files(dir, &trainer, args.seed, epochs, images)?;
    }
    let (mut losses, mut test_losses) = (vec![], vec![]);
    let mut accuracy = trainer.test()?.accuracy;
    for _ in 0..epochs {
        let bar = ProgressBar::new(trainer.steps_per_epoch() as u64);
        bar.set_style(ProgressStyle::with_template("{prefix} {bar:40} {pos}/{len} steps, {eta} left")?);
        bar.set_prefix(format!("epoch {}", trainer.epochs() + 1));
        let e = trainer.epoch(&mut |done, _| bar.set_position(done as u64))?;
        bar.finish_and_clear();
        println!(
            "epoch {:>3}  loss {:.6}  accuracy {:.4}  test loss {:.6}  test accuracy {:.4}",
            e.number + 1,
            e.train.loss,
            e.train.accuracy,
            e.test.loss,
            e.test.accuracy
        );
        losses.push((e.number as f64 + 1.0, e.train.loss));
        test_losses.push((e.number as f64 + 1.0, e.test.loss));
        accuracy = e.test.accuracy;
    }
    let weights = trainer.weights()?;
    if let (Some(path), 0) = (&args.save, epochs) {
        safetensors::save(path, &weights)?;
    }
    Ok(Outcome { device: facts.id.clone(), hash: weights_sha256(&weights), accuracy, losses, test_losses })
}

fn peer_files(
    dir: &Path,
    trainer: &Trainer,
    seed: u64,
    epochs: u64,
    images: u32,
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(dir)
        .map_err(|e| format!("--peer-files {}: cannot be made: {e}; give another folder", dir.display()))?;
    safetensors::save(&dir.join("initial.safetensors"), &trainer.weights()?)?;
    let mut order: Vec<u8> = vec![];
    let bytes = epochs.checked_mul(4 * u64::from(images)).and_then(|n| usize::try_from(n).ok());
    bytes
        .and_then(|n| order.try_reserve_exact(n).ok())
        .ok_or("--peer-files: the order of the images does not fit into memory; give fewer --epochs")?;
    order.extend((0..epochs).flat_map(|e| permutation(seed, e, images)).flat_map(u32::to_le_bytes));
    write_atomic(&dir.join("order.u32"), &order)?;
    Ok(())
}
