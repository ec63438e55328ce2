//! What planning costs, by the size of the configs.

use std::collections::BTreeSet;
use std::rc::Rc;

use kube_lite::ObjectName;
use kube_lite::discovery::Discovery;
use tokio::time::Instant;

use super::shapes::{serves, shapes};
use super::*;
use crate::api::edge_sync_config::EdgeSyncConfig;
use crate::api::syncer_config::SyncerConfig;

/// How many steps a slice may take here.
const SLICE: usize = 2000;

/// What of a text was read.
fn wanted(config: &str) -> Wanted {
    if config.contains("downSyncedResources") {
        let config = EdgeSyncConfig::parse(config.as_bytes()).unwrap();
        Wanted::from_configs([], [&config], true)
    } else {
        let config = SyncerConfig::parse(config.as_bytes()).unwrap();
        Wanted::from_configs([&config], [], true)
    }
}

/// Types that were synced once, some of which are selected and some not served any more.
fn synced_once(count: usize) -> BTreeSet<SyncedType> {
    let types = (0..count).flat_map(|index| {
        [Direction::Down, Direction::Up].map(|direction| SyncedType {
            direction,
            group: "many.io".into(),
            version: "v1".into(),
            resource: format!("t{index}s"),
            of: None,
        })
    });
    types.collect()
}

/// How many steps a plan takes, and the questions about a hundred objects.
fn steps_of(config: &str, known: usize, served: &Discovery) -> usize {
    let mut wanted = wanted(config);
    wanted.retained = synced_once(known);
    steps::taken();
    let plan = Plan::resolve(&wanted, &Filter::default(), served, served, Some("own"));
    for planned in plan.types.values().take(1) {
        for index in 0..100 {
            let _ = planned.selector.selects(&ObjectName::new("n1", &format!("a{index}")));
        }
    }
    steps::taken()
}

#[test]
fn the_steps_of_a_plan_grow_as_the_configs_do() {
    const FEW: usize = 1000;
    const MANY: usize = 10_000;
    let (few_served, many_served) = (serves(FEW / 10), serves(MANY / 10));
    for ((shape, few), (_, many)) in shapes(FEW).into_iter().zip(shapes(MANY)) {
        let (few_steps, many_steps) = (
            steps_of(&few, FEW / 10, &few_served),
            steps_of(&many, MANY / 10, &many_served),
        );
        // The parts of a shape do not grow alike, and conversions have a limit: a product of two of them is found by the bytes.
        let growth = many.len().div_ceil(few.len()).max(MANY / FEW);
        assert!(
            many_steps <= 3 * growth * few_steps,
            "{shape}: {few_steps} steps for {} bytes, {many_steps} for {}",
            few.len(),
            many.len()
        );
        assert!(
            many_steps <= 4 * many.len(),
            "{shape}: {many_steps} steps for {} bytes",
            many.len()
        );
    }
}

/// Makes the plan of a config in slices of `SLICE` steps. Gives the most that one has taken.
fn in_slices(config: &str, known: usize, served: &Rc<Discovery>) -> (usize, Plan) {
    let (mut by_plural, mut by_kind) = (Vec::new(), Vec::new());
    if config.contains("downSyncedResources") {
        by_kind.push(Rc::new(EdgeSyncConfig::parse(config.as_bytes()).unwrap()));
    } else {
        by_plural.push(Rc::new(SyncerConfig::parse(config.as_bytes()).unwrap()));
    }
    let mut most = 0;
    let mut wanted = to_its_end(Wanted::merging(by_plural, by_kind, true), &mut most);
    wanted.retained = synced_once(known);
    let sides = [served, served].map(Rc::clone);
    let [hub, edge] = sides;
    let own = Some("own".to_owned());
    let plan = Plan::resolving(Rc::new(wanted), Rc::default(), hub, edge, own);
    let plan = to_its_end(plan, &mut most);
    (most, plan)
}

fn to_its_end<T>(mut sliced: Sliced<T>, most: &mut usize) -> T {
    loop {
        steps::taken();
        let result = sliced.go_on(&mut SLICE.clone());
        *most = steps::taken().max(*most);
        if let Some(result) = result {
            return result;
        }
    }
}

#[test]
fn a_slice_of_a_plan_takes_as_many_steps_as_it_may_however_large_the_configs_are() {
    for count in [1000, 10_000] {
        let served = Rc::new(serves(count / 10));
        for (shape, config) in shapes(count) {
            let (most, plan) = in_slices(&config, count / 10, &served);
            // The largest part that is not divided visits each entry, or each type of a group, once.
            assert!(most <= SLICE + count + 2000, "{shape}: {most} steps of {count} entries");
            let mut wanted = wanted(&config);
            wanted.retained = synced_once(count / 10);
            let whole = Plan::resolve(&wanted, &Filter::default(), &served, &served, Some("own"));
            assert!(plan == whole, "{shape}: it is another plan");
        }
    }
}

/// How long a config of 10,000 entries takes in each shape, for a look with `cargo test --release`.
#[test]
#[ignore = "prints times"]
#[expect(clippy::print_stdout, reason = "people read it")]
fn times() {
    let served = serves(1000);
    for (shape, config) in shapes(10_000) {
        let mut since = Instant::now();
        let mut lap = || {
            let took = since.elapsed();
            since = Instant::now();
            took
        };
        let wanted = wanted(&config);
        let read = lap();
        let plan = Plan::resolve(&wanted, &Filter::default(), &served, &served, Some("own"));
        let resolved = lap();
        let selectors: Vec<_> = plan.types.values().map(|planned| &planned.selector).take(2).collect();
        if let [first, second] = selectors[..] {
            let _ = first.added_to(second);
        }
        let compared = lap();
        for selector in &selectors {
            for index in 0..10_000 {
                let _ = selector.selects(&ObjectName::new("n1", &format!("a{index}")));
            }
        }
        let asked = lap();
        let (bytes, types) = (config.len(), plan.types.len());
        println!(
            "{shape}: {bytes} bytes read and merged {read:?}, {types} types planned {resolved:?}, compared {compared:?}, asked {asked:?}"
        );
    }
}
