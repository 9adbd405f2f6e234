//! Why the plan of a scheduler lost: one sentence made of measured figures.

use tw_place::{Machine, Placed, Rivals};

use super::super::units::{bytes, count, seconds};
use super::{Explanation, busiest};

/// Makespans within this fraction count as equal.
const SAME_TIME: f64 = 0.005;

/// A cause below this fraction of the difference is not reported.
const MATTERS: f64 = 0.1;

/// Traffic that is larger by this factor is worth a word in any case.
const MUCH_MORE: f64 = 1.1;

/// As many reasons as one sentence bears.
const MOST_REASONS: usize = 2;

/// The number of values named in a breakdown of traffic.
const MOST_VALUES: usize = 3;

/// A cause of the difference between two plans, and its size.
struct Reason {
    seconds: f64,
    text: String,
    /// True if it is a consequence of late messages.
    is_waiting: bool,
}

impl Explanation {
    /// One sentence per losing scheduler.
    pub(crate) fn why_lost(&self, rivals: &Rivals, machine: &Machine) -> Vec<String> {
        let Some((chosen, others)) = rivals.placed.split_first() else { return Vec::new() };
        let late = others.iter().map(|rival| self.why_later_than(chosen, rival, machine));
        late.chain(rivals.refused.iter().map(|rival| why_refused(rival, machine))).collect()
    }

    fn why_later_than(&self, chosen: &Placed, rival: &Placed, machine: &Machine) -> String {
        let (ours, theirs) = (chosen.simulation.makespan, rival.simulation.makespan);
        let (a, b) = (chosen.scheduler, rival.scheduler);
        if (theirs - ours).abs() <= SAME_TIME * ours.max(theirs) {
            let (ours, theirs) = (chosen.simulation.wire_bytes(), rival.simulation.wire_bytes());
            return match ours == theirs {
                true => format!("{b} ends at the same time and sends as much"),
                false => {
                    format!("{b} ends at the same time and sends {}, where {a} sends {}", bytes(theirs), bytes(ours))
                }
            };
        }
        if theirs < ours {
            let reasons = self.reasons(rival, chosen, machine);
            return format!(
                "{b} would end after {}, where {a} takes {}: {a} {reasons}",
                seconds(theirs),
                seconds(ours)
            );
        }
        format!("{b} takes {} as long: it {}", times(theirs / ours), self.reasons(chosen, rival, machine))
    }

    /// The causes that make one plan slower than another.
    fn reasons(&self, sooner: &Placed, later: &Placed, machine: &Machine) -> String {
        let difference = later.simulation.makespan - sooner.simulation.makespan;
        let mut reasons = vec![
            works_more(sooner, later, machine),
            has_more_tasks(sooner, later, machine),
            has_a_longer_path(sooner, later),
            waits(sooner, later),
        ];
        reasons.retain(|reason| reason.seconds >= MATTERS * difference && reason.seconds > 0.0);
        reasons.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let at = reasons.first().is_some_and(|reason| !reason.is_waiting) as usize;
        let mut texts: Vec<String> = reasons.into_iter().map(|reason| reason.text).collect();
        let (most, least) = (later.simulation.wire_bytes_max() as f64, sooner.simulation.wire_bytes_max() as f64);
        // Waiting is caused by late transfers, so the cause comes first.
        if most > MUCH_MORE * least || texts.is_empty() {
            texts.insert(at, self.receives_more(sooner, later));
        }
        texts.truncate(MOST_REASONS);
        texts.join(", and ")
    }

    fn receives_more(&self, sooner: &Placed, later: &Placed) -> String {
        let received = |placed: &Placed| busiest(placed.simulation.workers.iter().map(|worker| worker.received_bytes));
        let (worker, most) = received(later).unwrap_or_default();
        let (_, other) = received(sooner).unwrap_or_default();
        let name = sooner.scheduler;
        match other {
            _ if most <= other => {
                let (n, m) = (later.simulation.n_transfers, sooner.simulation.n_transfers);
                match n > m {
                    true => format!("sends {} messages, where {name} sends {}", count(n), count(m)),
                    false => "has no one thing to blame".to_string(),
                }
            }
            0 => format!("sends {} to worker {worker}, where {name} sends nothing", self.sent_to(later, worker, most)),
            _ => {
                let ratio = times(most as f64 / other as f64);
                let sent = self.sent_to(later, worker, most);
                format!("sends {ratio} as much to its busiest worker, {sent}, where {name} sends {}", bytes(other))
            }
        }
    }

    /// `17.3 GiB (8.6 GiB of `a`, 8.7 GiB of `b`; most for line 3)`.
    fn sent_to(&self, placed: &Placed, worker: u32, total: u64) -> String {
        let flows = placed.flows(Some(worker));
        let Some(most) = flows.first() else { return bytes(total) };
        let place = self.placed_statement(&placed.workflow, most.statement).0.to_string();
        let mut values: Vec<(String, u64)> = Vec::new();
        for flow in &flows {
            let value = self.placed_value(&placed.workflow, flow.set);
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, sum)) => *sum += flow.bytes,
                None => values.push((value, flow.bytes)),
            }
        }
        values.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let named = values.iter().take(MOST_VALUES).map(|(value, n)| format!("{} of {value}", bytes(*n)));
        let named: Vec<String> = named.collect();
        match &named[..] {
            [only] => format!("{only} for {place}"),
            _ => format!("{} ({}; most for {place})", bytes(total), named.join(", ")),
        }
    }
}

fn why_refused(rival: &Placed, machine: &Machine) -> String {
    let peaks = rival.simulation.workers.iter().map(|worker| worker.peak_bytes);
    let (worker, peak) = busiest(peaks).unwrap_or_default();
    let limit = bytes(machine.memory.unwrap_or(u64::MAX));
    format!("{} needs {} on worker {worker}, where the limit is {limit}", rival.scheduler, bytes(peak))
}

fn works_more(sooner: &Placed, later: &Placed, machine: &Machine) -> Reason {
    // Task overhead is a cause of its own.
    let computing = |placed: &Placed| -> Vec<f64> {
        let workers = placed.simulation.workers.iter();
        workers.map(|worker| worker.busy - worker.tasks as f64 * machine.task).collect()
    };
    let (theirs, ours) = (computing(later), computing(sooner));
    let (worker, most) = busiest(theirs.iter().copied()).unwrap_or_default();
    let (_, other) = busiest(ours.into_iter()).unwrap_or_default();
    let share = times(most * theirs.len() as f64 / theirs.iter().sum::<f64>().max(f64::MIN_POSITIVE));
    let text = format!("computes {share} as long as an even share on worker {worker}");
    Reason { seconds: most - other, text, is_waiting: false }
}

fn has_more_tasks(sooner: &Placed, later: &Placed, machine: &Machine) -> Reason {
    let most =
        |placed: &Placed| busiest(placed.simulation.workers.iter().map(|worker| worker.tasks)).unwrap_or_default();
    let ((worker, n), (_, other)) = (most(later), most(sooner));
    let (name, each) = (sooner.scheduler, seconds(machine.task));
    let text =
        format!("runs {} tasks on worker {worker}, where {name} runs {}, at {each} each", count(n), count(other));
    Reason { seconds: (n as f64 - other as f64) * machine.task, text, is_waiting: false }
}

fn has_a_longer_path(sooner: &Placed, later: &Placed) -> Reason {
    let (long, short) = (later.simulation.critical_path, sooner.simulation.critical_path);
    let ratio = times(long / short.max(f64::MIN_POSITIVE));
    let text = format!("waits on a critical path {ratio} as long, {}", seconds(long));
    Reason { seconds: long - short, text, is_waiting: true }
}

/// Blocks come late, in an order that keeps even the worker with the most to compute waiting.
fn waits(sooner: &Placed, later: &Placed) -> Reason {
    let waiting = |placed: &Placed| {
        let busy = busiest(placed.simulation.workers.iter().map(|worker| worker.busy)).unwrap_or_default().1;
        placed.simulation.makespan - busy
    };
    let (long, short) = (waiting(later), waiting(sooner));
    let (of, name) = (seconds(later.simulation.makespan), sooner.scheduler);
    let text =
        format!("keeps its busiest worker waiting {} of {of}, where {name} does {}", seconds(long), seconds(short));
    Reason { seconds: long - short, text, is_waiting: true }
}

/// `2.90x`, `12x`.
fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}x") } else { format!("{ratio:.0}x") }
}
