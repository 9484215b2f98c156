//! Cost of a million keys from `add` over `get` to `done`, with one producer and with eight.

use std::thread;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use kcm_workqueue::{Priority, Queue, QueueOptions};

const KEYS: usize = 1_000_000;

/// Producers on threads of their own add all keys while this thread works them off.
fn add_get_done(queue: &Queue<usize>, producers: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    thread::scope(|scope| {
        for producer in 0..producers {
            scope.spawn(move || (producer..KEYS).step_by(producers).for_each(|key| queue.add(key, Priority::Live)));
        }
        runtime.block_on(async {
            for _ in 0..KEYS {
                let key = queue.get().await.expect("the queue is open");
                queue.done(&key);
            }
        });
    });
}

fn bench_queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("add_get_done");
    group.sample_size(10).throughput(Throughput::Elements(KEYS as u64));
    for producers in [1, 8] {
        group.bench_function(format!("{producers}_producers"), |bencher| {
            let new_queue = || Queue::new(QueueOptions::named("bench"));
            bencher.iter_batched_ref(new_queue, |queue| add_get_done(queue, producers), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, bench_queue);
criterion_main!(benches);
