//! Every target runs a few inputs in every test run; long runs are a command.

use orlop_clock::Clock;
use orlop_fuzz::driver::{self, Plan, Until};
use orlop_fuzz::targets::TARGETS;

/// Inputs of each target: as many as fit into a quick run of a debug build.
const INPUTS: u64 = 300;

#[test]
fn no_target_finds_anything_in_a_few_inputs() {
    let plan = Plan { seed: 7, until: Until::Inputs(INPUTS) };
    for (name, make) in TARGETS {
        let report = driver::run(&mut *make(), plan, &Clock::system(), |_, _| ());
        let report = report.unwrap_or_else(|found| {
            panic!("{name}: {}: {}", found.what, String::from_utf8_lossy(&found.input))
        });
        assert_eq!(report.inputs, INPUTS, "{name}");
        assert!(report.classes > 1, "{name} has only one answer");
    }
}
