//! `docs/functions.md`: what is known of every function, written from the evidence in the repository.
//!
//! Here lives the page and what no file of evidence says: a function's method in a line, its bounds, and where its
//! formula is from. Costs are counted from the bodies, hard cases and proofs are read. The one idea: the page cannot
//! claim what the evidence does not hold, so a function without a proof over all arguments says so.

use crate::tape::Tape;
use crate::truth::Function;
use std::fmt::Write;
use ulpian_num::Func;

const CPU: &str = include_str!("../../../docs/evidence/functions-cpu.txt");
const H200: &str = include_str!("../../../docs/evidence/functions-h200.txt");
const LAVAPIPE: &str = include_str!("../../../docs/evidence/functions-lavapipe.txt");
const ACCURACY: &str = include_str!("../../../docs/evidence/accuracy-functions.txt");
const HARD: &str = include_str!("../data/hard_cases.txt");

/// Names; method; f32 bound where it is not 0.5; f64 bound; file; what the formula follows.
type About =
    (&'static [&'static str], &'static str, Option<&'static str>, &'static str, &'static str, &'static str);

const ABOUT: &[About] = &[
    (
        &["div"],
        "reciprocal by Newton's steps, two exact residual steps",
        None,
        "0.5",
        "div",
        "Markstein; Dekker's products in f64",
    ),
    (&["sqrt"], "guess on the bits, cubic steps, exact residual", None, "0.5", "sqrt", "Newton; Markstein"),
    (
        &["reciprocal", "rsqrt", "cbrt"],
        "guess on the bits, steps without division, fused residual",
        None,
        "0.51",
        "root",
        "Newton, Halley",
    ),
    (
        &["exp", "exp2"],
        "x = k·log_b 2 + r, polynomial with leading pairs",
        None,
        "0.58",
        "exp",
        "Cody and Waite",
    ),
    (&["exp10"], "x = k·log_10 2 + r, polynomial with leading pairs", None, "0.51", "exp", "Cody and Waite"),
    (&["expm1"], "2^k·((1 − 2^−k) + r·p(r)) in pairs", None, "0.85", "hyper", "Cody and Waite"),
    (&["log"], "k·ln 2 + 2·atanh((m−1)/(m+1)) in pairs", None, "0.6", "log", "Tang; fdlibm's form in f64"),
    (&["log2", "log10"], "as log, coefficients of the base", None, "0.51", "log", "Tang"),
    (&["log1p"], "as log, with x scaled like m", None, "0.7", "log", "Tang"),
    (
        &["asinh", "acosh", "atanh"],
        "logarithms through one quotient, roots as pairs",
        None,
        "0.51",
        "area",
        "textbook identities",
    ),
    (
        &["softplus", "logsigmoid"],
        "max(x, 0) + 2·atanh of e^−|x| in pairs",
        None,
        "0.51",
        "softplus",
        "textbook identities",
    ),
    (
        &["logaddexp"],
        "the greater plus softplus of the difference",
        Some("0.5 + 2^−34 where nothing cancels"),
        "0.52 where nothing cancels",
        "softplus",
        "textbook identities",
    ),
    (&["xlogy"], "the logarithm's pair times x", Some("0.5 + 2^−34"), "0.52", "xlogy", "as log"),
    (&["tanh"], "N/(2 − N) with N = −expm1(−2x) in pairs", None, "0.75", "tanh", "textbook identities"),
    (&["sigmoid"], "1/(1 + E) or E/(1 + E) in pairs", None, "0.6", "sigmoid", "textbook identities"),
    (
        &["sinh", "cosh"],
        "sums of positive terms of expm1's parts",
        None,
        "0.51",
        "hyper",
        "textbook identities",
    ),
    (&["silu"], "x·sigmoid(x) in pairs", None, "0.51", "activation", "PyTorch's definition"),
    (&["gelu_tanh"], "x·sigmoid(2u) in pairs", None, "0.51", "activation", "PyTorch's definition"),
    (
        &["mish"],
        "x·n/(n + 2), n = e^x·(e^x + 2), in pairs",
        None,
        "0.51",
        "activation",
        "PyTorch's definition",
    ),
    (&["elu", "celu"], "x, or expm1", None, "0.85", "activation", "PyTorch's definition"),
    (&["selu"], "two pairs times x or expm1", None, "0.51", "activation", "PyTorch's definition"),
    (&["erfinv"], "x·P(w), w = −log(1 − x²), in pairs", None, "0.55", "erfinv", "Giles"),
    (
        &["lgamma", "digamma"],
        "polynomials by range beside the factors with the zeros, Stirling's series; reflection below",
        None,
        "0.55, more near zeros of x < 0",
        "gamma",
        "Stirling; reflection",
    ),
    (&["erf"], "1 − 2^−z, z = x·Q(x)", None, "0.55", "erf", "own fit of log erfc"),
    (
        &["erfc", "gelu"],
        "e^(−x²)·G(t)/(x + K), t = (x − K)/(x + K)",
        None,
        "0.55",
        "erf",
        "Cody; Shepherd and Laframboise",
    ),
    (&["sinpi", "cospi"], "exact reduction, one polynomial in pairs", None, "0.7", "trig", "Cody and Waite"),
    (
        &["sin", "cos", "tan"],
        "reduction in pairs to 2^18, by 192 bits of 2/π beyond",
        None,
        "0.54",
        "trig",
        "Cody and Waite; Payne and Hanek",
    ),
    (
        &["atan", "asin", "acos"],
        "three cases of one arc, in pairs",
        None,
        "0.54",
        "arc",
        "textbook identities",
    ),
    (&["atan2"], "as atan, with both arguments", Some("0.5 + 2^−34"), "0.54", "arc", "textbook identities"),
    (
        &["pow"],
        "2^(y·log2 x), the logarithm to 2^−46",
        Some("0.5 + 2^−27"),
        "0.5 + 2^−7 a unit of log2",
        "pow",
        "fdlibm's outline",
    ),
    (&["hypot"], "root of the exact sum of squares in pairs", None, "0.51", "hypot", "textbook identities"),
    (
        &["fmod", "remainder"],
        "powers of two modulo the divisor, in integers",
        None,
        "exact",
        "fmod",
        "modular arithmetic",
    ),
];

/// What a file of evidence says of a function's f32 results over all arguments: its counts and hash.
fn proof(evidence: &'static str, opening: &str) -> Option<(&'static str, &'static str)> {
    let line = evidence.lines().map(str::trim).find(|l| l.starts_with(opening))?;
    let hash = line.split("hash = ").nth(1)?.split(' ').next()?;
    let wrong = line.split("  ").find(|p| p.starts_with("wrong = "))?;
    Some((wrong, hash.get(..16)?))
}

fn row(f: Func) -> String {
    let name = f.name();
    let about = ABOUT.iter().find(|a| a.0.contains(&name));
    let (method, bound, double, file, source) =
        about.map_or(("see its file", None, "see its file", "mod", ""), |a| (a.1, a.2, a.3, a.4, a.5));
    let f32_bound = match bound {
        Some(bound) => bound,
        None if f.correctly_rounded() => "0.5",
        None => "see its file",
    };
    let truth = Function::named(name);
    let hard: Vec<&str> =
        HARD.lines().filter(|l| l.split(' ').next().and_then(Function::named) == truth).collect();
    let nearest = hard.iter().filter_map(|l| l.rsplit(' ').next()?.parse::<i32>().ok()).min();
    let hard = match nearest {
        Some(n) => format!("{}, to 2^{n}", hard.len()),
        None => "-".into(),
    };
    let cpu = match proof(CPU, &format!("{name} f32 flush all 2^32 ")) {
        Some((wrong, hash)) => format!("{wrong}, `{hash}`"),
        None if f.arity() == 2 => "no list of pairs is a proof: sampled".into(),
        None => "**not yet run over all arguments**".into(),
    };
    let gpu = proof(H200, &format!("H200 {name} f32 flush all 2^32 "));
    let gpu = gpu.map_or("-".into(), |(_, hash)| format!("`{hash}`"));
    let half = if f.arity() == 1 { "0.5" } else { "see half.rs" };
    let doubles = Tape::cost_through_doubles(f).map_or(String::new(), |c| format!(", {c}"));
    let cost = format!("{}{doubles}", Tape::of(f, false).cost());
    // A bar would end the cell.
    let method = method.replace('|', "\\|");
    format!(
        "| {name} | {method} | {f32_bound} | {half} | {double} | {hard} | {cost} | {cpu} | {gpu} | \
         [{file}.rs](../crates/ulpian-num/src/functions/{file}.rs) | {source} |\n"
    )
}

/// The page.
pub fn page() -> String {
    let mut text = String::from(
        "# The functions\n\n\
         <!-- Written by `ulpian prove --page` from docs/evidence; a test compares. -->\n\n\
         Every elementary function, with what is known of it. Bounds are in units of the last place: 0.5 is the nearest \
         number, always. f32 and f64 results are the same bits on every device.\n\n\
         - *f32*, *f16, bf16*, *f64*: the greatest error. 16-bit results of one argument are checked on all 65,536 inputs \
         on every device; of two they are what `half.rs` says. f64 bounds are what tests against 100-bit values \
         hold it to.\n\
         - *hard cases*: recorded arguments that come nearest to half-way between two floats, and how near in units of \
         the last place; tests run them.\n\
         - *cost*: operations of the f32 fast path through pairs of floats, and of the one through doubles, each counted once \
         (an fma is one).\n\
         - *all arguments, CPU*: wrong results among all 2^32, subnormals flushed, and the hash of all results (its \
         first digits); *H200*: the hash of the GPU's. `docs/evidence/functions-cpu.txt` and `functions-h200.txt` have \
         the whole hashes, machines and commits; `ulpian prove NAME` runs it again.\n\
         - *source*: whose reduction or form it follows. Polynomials and tables are all made by \
         `crates/ulpian-num/tools`.\n\n\
         | function | method | f32 | f16, bf16 | f64 | hard cases | cost | all arguments, CPU | H200 | file | source |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    Func::ALL.iter().for_each(|f| text += &row(*f));
    let unary = || Func::ALL.iter().filter(|f| f.arity() == 1);
    let of = |evidence: &'static str, f: &Func| {
        evidence.lines().any(|l| {
            l.strip_prefix(f.name())
                .is_some_and(|r| r.starts_with(" f32 flush ") && r.contains("  wrong = 0  "))
        })
    };
    let (proven, sampled) =
        (unary().filter(|f| of(CPU, f)).count(), unary().filter(|f| of(LAVAPIPE, f)).count());
    let _ = write!(
        text,
        "\n{proven} of {} functions of one argument are proven over all arguments on the CPU. On lavapipe {sampled} have \
         the CPU's hash over the stated subset (`docs/evidence/functions-lavapipe.txt`).\n\n## Beside others\n\n",
        unary().count()
    );
    text += ACCURACY.trim();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_page_is_the_one_written_from_the_evidence() {
        let committed = include_str!("../../../docs/functions.md");
        assert!(committed == page(), "run `ulpian prove --page > docs/functions.md`");
    }

    #[test]
    fn an_unproven_function_says_so() {
        for f in Func::ALL.iter().filter(|f| f.arity() == 1) {
            let claimed = !row(*f).contains("**not yet run over all arguments**");
            let held = CPU.lines().any(|l| {
                l.starts_with(&format!("{} f32 flush all 2^32  wrong = ", f.name()))
                    && !l.contains("UNFINISHED")
            });
            assert_eq!(claimed, held, "{}", f.name());
        }
    }
}
