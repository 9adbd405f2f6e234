//! Single promises of wires.

mod common;

use common::{Draw, assert_empty, low_limits};
use tw_ir::{Blame, Result};
use tw_wire::*;

fn pair(limits: WireLimits) -> (ChannelWire, ChannelWire) {
    let [a, b]: [ChannelWire; 2] = channels(2, limits).try_into().ok().expect("two wires");
    (a, b)
}

/// Polls both until nothing happens.
fn settle(wires: [&ChannelWire; 2]) -> [Vec<Completion>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..10 {
        wires.iter().zip(&mut found).for_each(|(wire, found)| wire.poll(found));
    }
    found
}

const TAG: Tag = Tag { run: 1, id: 0 };

#[test]
fn messages_without_receives_are_held_within_the_window() {
    let limits = WireLimits { window: 10_000, ..WireLimits::default() };
    let (a, b) = pair(limits);
    for k in 0..1000u32 {
        a.send(1, TAG, Message::of(vec![k as u8; 100])).unwrap();
    }
    settle([&a, &b]);
    let (sender, receiver) = (a.memory(), b.memory());
    assert!(receiver.early > 5_000 && receiver.early <= limits.window, "{receiver:?}");
    assert_eq!(sender.sending + receiver.early, 100_000);
    for _ in 0..1000 {
        b.receive(0, TAG, Room::Bytes(100)).unwrap();
    }
    let [sent, received] = settle([&a, &b]);
    // Some were sent, and said so, before.
    assert_eq!(sent.len() as u64, sender.sending / 100);
    let mut contents = received.iter().map(|completion| match completion {
        Completion::Received { ticket, message, .. } => (*ticket, message.buffers[0].bytes().to_vec()),
        other => panic!("{other:?}"),
    });
    let mut by_ticket: Vec<_> = contents.by_ref().collect();
    by_ticket.sort();
    assert!(by_ticket.iter().enumerate().all(|(k, (_, bytes))| *bytes == vec![k as u8; 100]));
    assert_empty(&[a, b]);
}

#[test]
fn the_window_is_given_back() {
    let limits = WireLimits { window: 1000, ..WireLimits::default() };
    let (a, b) = pair(limits);
    for _ in 0..200 {
        b.receive(0, TAG, Room::Bytes(200)).unwrap();
        a.send(1, TAG, Message::of(vec![1; 200])).unwrap();
        assert_eq!(a.memory().sending, 0, "a short message whose receive is posted never waits");
        let [_, received] = settle([&a, &b]);
        assert!(matches!(received[..], [Completion::Received { .. }]));
    }
}

#[test]
fn rooms_that_do_not_fit_fail_and_free_the_sender() {
    for length in [10usize, 100_000] {
        let rooms: [fn() -> Room; 4] =
            [|| Room::Bytes(9), || Room::Ask(9), || Room::Into(vec![]), || Room::Into(vec![Box::new(vec![0; 9])])];
        for room in rooms {
            let (a, b) = pair(WireLimits::default());
            b.receive(0, TAG, room()).unwrap();
            a.send(1, TAG, Message::of(vec![1; length])).unwrap();
            let [sent, received] = settle([&a, &b]);
            assert!(matches!(sent[..], [Completion::Sent { .. }]), "{sent:?}");
            let [Completion::Failed { error, .. }] = &received[..] else { panic!("{received:?}") };
            assert!(error.message().starts_with("rank 0 sent "), "{error}");
            assert_eq!(error.blame(), Blame::Internal);
            assert_empty(&[a, b]);
        }
    }
}

#[test]
fn offers_are_accepted_with_the_right_memory_only() {
    for length in [10u64, 100_000] {
        let (a, b) = pair(WireLimits::default());
        let ticket = b.receive(0, TAG, Room::Ask(length)).unwrap();
        assert!(b.accept(ticket, vec![]).is_err());
        a.send(1, TAG, Message { header: vec![3], buffers: vec![Payload::from(vec![1; length as usize])] }).unwrap();
        let [_, received] = settle([&a, &b]);
        let [Completion::Offered { header, lengths, .. }] = &received[..] else { panic!("{received:?}") };
        assert_eq!((&header[..], &lengths[..]), (&[3u8][..], &[length][..]));
        assert!(b.accept(ticket, vec![Box::new(vec![0; length as usize + 1])]).is_err());
        b.accept(ticket, vec![Box::new(vec![0; length as usize])]).unwrap();
        assert!(b.accept(ticket, vec![Box::new(vec![0; length as usize])]).is_err());
        let [_, received] = settle([&a, &b]);
        assert!(
            matches!(&received[..], [Completion::Received { message, .. }] if message.buffers[0].bytes() == vec![1; length as usize])
        );
        assert_empty(&[a, b]);
    }
}

#[test]
fn ranks_of_one_process_share_long_buffers() {
    let (a, b) = pair(WireLimits::default());
    let data = std::sync::Arc::new(vec![5u8; 1 << 20]);
    a.send(1, TAG, Message { header: vec![], buffers: vec![Payload::new(data.clone())] }).unwrap();
    b.receive(0, TAG, Room::Bytes(1 << 20)).unwrap();
    let [_, mut received] = settle([&a, &b]);
    let Some(Completion::Received { mut message, .. }) = received.pop() else { panic!("{received:?}") };
    let same = message.buffers.remove(0).downcast::<Vec<u8>>().unwrap();
    assert!(std::sync::Arc::ptr_eq(&same, &data));
}

#[test]
fn wrong_calls_fail_and_change_nothing() {
    let (a, b) = pair(WireLimits::default());
    let long = Message { header: vec![0; MAX_HEADER + 1], buffers: vec![] };
    let many = Message { header: vec![], buffers: vec![Payload::from(vec![]); MAX_BUFFERS + 1] };
    assert!(a.send(1, TAG, long).is_err());
    assert!(a.send(1, TAG, many).is_err());
    assert!(a.send(0, TAG, Message::default()).is_err());
    assert!(a.send(2, TAG, Message::default()).is_err());
    assert!(a.receive(2, TAG, Room::Bytes(0)).is_err());
    let control = Control { run: 0, kind: ControlKind::Notice, content: vec![0; MAX_CONTROL + 1] };
    assert!(a.control(1, control).is_err());
    a.cancel(TAG.run);
    assert_eq!(a.send(1, TAG, Message::default()).unwrap_err().blame(), Blame::Cancelled);
    assert!(settle([&a, &b]).concat_is_empty());
    assert_empty(&[a, b]);
}

trait ConcatIsEmpty {
    fn concat_is_empty(&self) -> bool;
}
impl ConcatIsEmpty for [Vec<Completion>; 2] {
    fn concat_is_empty(&self) -> bool {
        self.iter().all(Vec::is_empty)
    }
}

#[test]
fn control_messages_pass_while_data_is_stuck_and_after_a_run() {
    let (a, b) = pair(WireLimits { window: 0, ..WireLimits::default() });
    for _ in 0..100 {
        a.send(1, TAG, Message::of(vec![0; 50_000])).unwrap();
    }
    b.cancel(TAG.run);
    let sent = [ControlKind::Error, ControlKind::Heartbeat, ControlKind::Notice].map(|kind| Control {
        run: TAG.run,
        kind,
        content: vec![kind as u8; 10],
    });
    sent.iter().for_each(|control| a.control(1, control.clone()).unwrap());
    let [_, received] = settle([&a, &b]);
    let received: Vec<&Control> = received
        .iter()
        .map(|completion| match completion {
            Completion::Control { from: 0, control } => control,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(received, sent.iter().collect::<Vec<_>>());
    assert_empty(&[a, b]);
}

#[test]
fn a_panicking_rank_is_lost_for_the_others() {
    let (a, b) = pair(WireLimits::default());
    a.receive(1, TAG, Room::Bytes(1)).unwrap();
    let ended = std::thread::spawn(move || {
        let _held = b;
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(ended.join().is_err());
    let mut found = Vec::new();
    a.poll(&mut found);
    assert!(matches!(found[..], [Completion::Lost { rank: Some(1), .. }]), "{found:?}");
    assert_eq!(a.send(1, TAG, Message::default()).unwrap_err().blame(), Blame::Resource);
    assert_empty(&[a]);
}

#[test]
fn waiting_ends_by_messages_and_by_waking() {
    let long = std::time::Duration::from_secs(600);
    let (a, b) = pair(WireLimits::default());
    b.wake();
    b.wait(long);
    let (heard, is_heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let b = &b;
        scope.spawn(move || {
            let mut found = Vec::new();
            while found.is_empty() {
                b.wait(long);
                b.poll(&mut found);
            }
            heard.send(()).unwrap();
            b.wait(long);
        });
        a.control(1, Control { run: 1, kind: ControlKind::Heartbeat, content: vec![] }).unwrap();
        is_heard.recv().unwrap();
        b.wake();
    });
    // A call that makes a completion wakes, too: the thread that polls may be waiting.
    a.send(1, TAG, Message::of(vec![1])).unwrap();
    a.wait(long);
}

/// One collective on all ranks of a network, driven by one thread.
fn collect<W: Wire>(
    wires: &[W],
    mut step: impl FnMut(),
    start: impl Fn(&W) -> Result<Collective>,
) -> Vec<Vec<Vec<u8>>> {
    let mut collectives: Vec<Collective> = wires.iter().map(|wire| start(wire).expect("a collective starts")).collect();
    for _ in 0..1_000_000 {
        if collectives.iter().all(Collective::is_done) {
            let result = |collective: &Collective| collective.result().expect("packed").expect("it is done");
            return collectives.iter().map(result).collect();
        }
        for (wire, collective) in wires.iter().zip(&mut collectives) {
            let mut completions = Vec::new();
            wire.poll(&mut completions);
            for completion in completions {
                let rest = collective.advance(wire, completion).expect("nothing fails");
                assert!(rest.is_none(), "{rest:?}");
            }
        }
        step();
    }
    panic!("a collective is stuck");
}

#[test]
fn collectives_give_every_rank_its_result() {
    for seed in 0..60 {
        let mut draw = Draw::new(seed);
        let size = 1 + draw.below(20) as u32;
        let (network, wires) = SimulatedNetwork::new(size, seed, 20, low_limits(&mut draw));
        let root = draw.below(size as usize) as u32;
        let of = |rank: u32| vec![rank as u8; rank as usize * 7 % 50];
        let all: Vec<Vec<u8>> = (0..size).map(of).collect();
        for run in 1..3 {
            let step = || _ = network.step();
            let shared = collect(&wires, step, |wire| {
                Collective::share(wire, run, root, (wire.rank() == root).then(|| b"bits".to_vec()))
            });
            assert!(shared.iter().all(|result| *result == [b"bits"]));
            let gathered = collect(&wires, step, |wire| Collective::gather(wire, run, root, &of(wire.rank())));
            for (rank, result) in gathered.iter().enumerate() {
                assert_eq!(
                    *result,
                    if rank as u32 == root { all.clone() } else { vec![] },
                    "rank {rank} of {size}, root {root}"
                );
            }
            let everywhere = collect(&wires, step, |wire| Collective::gather_all(wire, run, &of(wire.rank())));
            assert!(everywhere.iter().all(|result| *result == all));
            collect(&wires, step, |wire| Collective::barrier(wire, run));
        }
        while network.step() {
            wires.iter().for_each(|wire| wire.poll(&mut Vec::new()));
        }
        assert_empty(&wires);
    }
}

/// A barrier of many ranks of one process: memory and time grow with the ranks, not with their pairs.
#[test]
fn many_ranks_are_cheap() {
    let wires = channels(4000, WireLimits::default());
    collect(&wires, || (), |wire| Collective::barrier(wire, 1));
}

#[test]
fn no_rank_passes_a_barrier_before_all_have_come() {
    let wires = channels(8, WireLimits::default());
    let n_there = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for wire in &wires {
            scope.spawn(|| {
                for run in 0..50u64 {
                    n_there.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    Collective::barrier(wire, run).unwrap().finish(wire, &mut |other| panic!("{other:?}")).unwrap();
                    assert!(n_there.load(std::sync::atomic::Ordering::SeqCst) >= 8 * (run as u32 + 1));
                }
            });
        }
    });
}

#[test]
fn a_collective_ends_when_a_rank_is_lost() {
    let (network, wires) = SimulatedNetwork::new(4, 1, 10, WireLimits::default());
    let collective = Collective::barrier(&wires[0], 1).unwrap();
    network.kill(3, Notice::Within(5));
    let mut n_heard = 0;
    let ended = collective.finish(&wires[0], &mut |other| {
        n_heard += usize::from(matches!(other, Completion::Lost { rank: Some(3), .. }));
        Ok(())
    });
    assert!(ended.unwrap_err().message().contains("rank 3 was killed"));
    assert_eq!(n_heard, 1);
}
