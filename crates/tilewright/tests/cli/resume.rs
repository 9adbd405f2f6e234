//! `tw run --resume` after SIGKILLs at random moments. `TW_KILLS` asks for more of them.

use std::time::{Duration, Instant};

use crate::tool::Dir;

/// A loop whose values do not fit into the budget, so that it spills in every turn.
const PROGRAM: &str = "\
x = random.uniform(300, 200, seed=7)
k = 0
while k < 60 {
    g = x.T @ x
    x = x @ g / sum(abs(g)) + 0.5 * sort(x, axis=0)
    k = k + 1
}
s = sum(x)
output x -> \"x.npy\"
output s
";

const OPTIONS: [&str; 6] = ["run", "p.tw", "--tile", "50", "--memory", "400KiB"];

#[test]
fn a_killed_run_goes_on_with_the_same_bits() {
    let kills: u32 = std::env::var("TW_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let dir = Dir::with_program(PROGRAM);
    let begin = Instant::now();
    let printed = dir.ok(&OPTIONS);
    let whole = begin.elapsed();
    let expected = std::fs::read(dir.path().join("x.npy")).unwrap();
    assert!(printed.contains("s: f64"), "{printed}");
    // The run that is killed spills: with and without a checkpoint.
    for more in [&["--report", "report.json"][..], &["--report", "report.json", "--resume", "kept"]] {
        dir.ok(&[&OPTIONS[..], more].concat());
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(dir.path().join("report.json")).unwrap()).unwrap();
        let spilled = report["spilled_bytes"].as_u64().unwrap();
        assert!(spilled > 60 * 100_000, "only {spilled} bytes are spilled in 60 turns");
        assert_eq!(std::fs::read(dir.path().join("x.npy")).unwrap(), expected);
    }
    let options = [&OPTIONS[..], &["--resume", "kept"]].concat();
    let (mut killed, mut seed, mut completed) = (0, 12345u64, 0);
    while killed < kills {
        std::fs::remove_file(dir.path().join("x.npy")).unwrap();
        // Killed again and again, a run ends some time: every turn that ended stays.
        loop {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let wait = whole.mul_f64((seed >> 33) as f64 / (1u64 << 31) as f64) + Duration::from_millis(2);
            let mut process = dir.command(&options).stdout(std::process::Stdio::null()).spawn().unwrap();
            let begin = Instant::now();
            let status = loop {
                if let Some(status) = process.try_wait().unwrap() {
                    break Some(status);
                }
                if begin.elapsed() > wait && killed < kills {
                    process.kill().unwrap();
                    process.wait().unwrap();
                    break None;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            match status {
                None => killed += 1,
                Some(status) => {
                    assert!(status.success());
                    break;
                }
            }
        }
        completed += 1;
        assert_eq!(std::fs::read(dir.path().join("x.npy")).unwrap(), expected, "after {killed} kills");
        assert_eq!(std::fs::read_dir(dir.path().join("kept")).unwrap().count(), 0, "a checkpoint is left");
    }
    println!("{killed} kills, {completed} runs completed");
}
