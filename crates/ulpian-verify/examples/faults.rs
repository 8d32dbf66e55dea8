//! Prints, for every function with a known truth, how many planted faults of each kind are seen:
//! `faults [FUNCTION...]`. `docs/evidence/planted-faults.txt` is its output.

use std::collections::BTreeMap;
use ulpian_num::Func;
use ulpian_verify::planted::{Count, survey};
use ulpian_verify::truth::Function;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let kinds = [
        "coefficient off by a unit",
        "correction dropped",
        "choice swapped",
        "integer off by one",
        "argument flushed",
        "result flushed",
    ];
    println!("{:11} {:>9} {:>8}  {}", "function", "arguments", "doubts", kinds.join(" | "));
    for f in Func::ALL.iter().copied().filter(|f| names.is_empty() || names.iter().any(|n| n == f.name())) {
        let Some(truth) = Function::named(f.name()).filter(|t| t.arity() == f.arity()) else { continue };
        let s = survey(f, truth, false, false)?;
        let row = |counts: &BTreeMap<&str, Count>| {
            let cell = |k: &&str| {
                counts.get(k).map_or("-".into(), |c: &Count| format!("{}/{}", c.caught, c.planted))
            };
            kinds.iter().map(cell).collect::<Vec<String>>().join(" | ")
        };
        println!("{:11} {:>9} {:>8}  {}", f.name(), s.arguments, s.doubts, row(&s.fast));
        if !s.slow.is_empty() {
            println!("{:11} {:>9} {:>8}  {}", "", "slow path", s.doubts.min(1024), row(&s.slow));
        }
    }
    Ok(())
}
