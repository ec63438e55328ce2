//! Hub and edge are found to be one cluster, or to be two again.

use driver::serve::HealthQuery;

use super::*;

impl Bench {
    /// Another address leads to a side, and this cluster answers there.
    fn becomes(&mut self, side: Side, uid: &'static str) {
        self.uids.insert(side, uid);
        self.contact(side).moves += 1;
        self.tell(Event::Due);
    }

    fn failing(&mut self) -> String {
        let (answer, mut page) = tokio::sync::oneshot::channel();
        let now = SECOND;
        self.tell(Event::Asked(HealthQuery::Metrics { now, answer }));
        let page = page.try_recv().expect("it answers at once");
        let page = String::from_utf8(page.to_vec()).expect("metrics are text");
        let line = page.lines().find(|line| line.starts_with("edge_syncer_failing "));
        line.expect("there is one").to_owned()
    }
}

#[test]
fn two_sides_that_become_one_cluster_fail_and_are_not_synced_until_they_are_two_and_then_it_begins_again() {
    for (side, own, other) in [(Side::Hub, THE_HUB, THE_EDGE), (Side::Edge, THE_EDGE, THE_HUB)] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a"]);
        assert_eq!(bench.failing(), "edge_syncer_failing 0");
        // A page is given out again for a second.
        bench.pass(5 * SECOND);
        bench.becomes(side, other);
        assert_eq!(bench.failing(), "edge_syncer_failing 1");
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 20));
        bench.says(origins, &config_map("b", 21));
        bench.log.clear();
        bench.pass(300 * SECOND);
        assert!(bench.work.is_empty(), "{:?}", bench.working());
        assert_eq!(bench.count("write"), 0, "{:?}", bench.log);
        // What is taken for the hub and is not learns nothing; the hub itself does.
        assert_eq!(bench.count("heartbeat") > 0, side == Side::Edge, "{:?}", bench.log);
        let (of_configs, _) = bench.model.of_edge(bench.model.hold_condition(), true);
        let failure = &of_configs[0].1.failures[0];
        assert_eq!((&*failure.reason, &*failure.object), ("SameCluster", "hub and edge"));
        assert_eq!(bench.turns, 0);
        bench.becomes(side, own);
        assert_eq!(bench.turns, 1, "what was read meanwhile is of no use");
        assert!(bench.log.contains(&"read the record".to_owned()), "{:?}", bench.log);
    }
}

#[test]
fn nothing_is_written_before_both_sides_have_said_who_they_are_and_one_cluster_is_the_end() {
    let mut bench = Bench::new();
    bench.uids = [(Side::Hub, "same"), (Side::Edge, "same")].into();
    let mut ended = None;
    while ended.is_none() {
        bench.model.advance();
        for effect in bench.model.effects() {
            let writes = matches!(
                &effect,
                Effect::Request(Request::WriteRecord(..) | Request::Heartbeat(_))
            );
            assert!(!writes);
            if let Some(answer) = bench.perform(effect) {
                ended = ended.or(bench.hand(Event::Answer(answer)).err());
            }
        }
    }
    assert_eq!(ended.map(|one| one.uid).as_deref(), Some("same"));
}
