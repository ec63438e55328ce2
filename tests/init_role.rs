//! The role `init`, as what it takes the place of is judged: each scenario runs the real binary against a simulated kcp, and
//! against a real one where there is one (`KCP_BIN`, or `kcp` in `PATH`). `scripts/test` runs both.
//!
//! `EDGE_SYNCER_INIT_BIN` names another binary to test. What simulation and tests take for granted of kcp is in
//! `assumptions`, which both have to pass.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "init_role/agent.rs"]
mod agent;
#[path = "init_role/assumptions.rs"]
mod assumptions;
#[path = "init_role/errors.rs"]
mod errors;
#[path = "init_role/faults.rs"]
mod faults;
#[path = "init_role/objects.rs"]
mod objects;
#[path = "simulated_kcp/agent.rs"]
mod of_role;
#[path = "init_role/operations.rs"]
mod operations;
#[path = "init_role/races.rs"]
mod races;
#[path = "init_role/render.rs"]
mod render;
#[path = "init_role/rights.rs"]
mod rights;
#[allow(dead_code, reason = "the role publish needs more of it")]
#[path = "simulated_kcp/mod.rs"]
mod simulated;
#[path = "simulated_kcp/stage.rs"]
mod stage;
#[path = "init_role/statuses.rs"]
mod statuses;
#[path = "init_role/take_over.rs"]
mod take_over;
#[path = "init_role/targets.rs"]
mod targets;
#[path = "simulated_kcp/wire.rs"]
mod wire;
#[path = "init_role/world.rs"]
mod world;

/// Each scenario twice. What needs a kcp has `workspaces` in the name of its module: by that scripts/test tells it apart.
macro_rules! scenarios {
    ($($file:ident: $($name:ident)+;)+) => {
        mod simulated_kcp {
            $($(
                #[tokio::test]
                async fn $name() {
                    crate::$file::$name(crate::stage::Which::Simulated).await;
                }
            )+)+
        }

        mod real_workspaces {
            $($(
                #[tokio::test]
                #[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
                async fn $name() {
                    crate::$file::$name(crate::stage::Which::Real).await;
                }
            )+)+
        }
    };
}

scenarios! {
    assumptions: kcp_does_what_is_assumed_of_it;
    objects:
        a_workspace_waits_until_an_agent_starts
        a_new_workspace_gets_objects_that_name_its_id_and_its_path
        a_namespace_is_made_before_what_is_in_it
        values_arrive_as_they_are
        a_definition_and_its_object_may_be_in_one_template
        a_kind_of_a_default_binding_is_waited_for
        of_two_documents_for_one_object_the_first_stays
        a_target_without_sources_and_a_template_without_objects_let_a_workspace_go
        an_object_without_a_namespace_is_in_default_where_that_exists
        a_list_is_unpacked
    ;
    errors:
        a_source_that_waits_does_not_stop_the_next_one
        a_template_that_cannot_be_rendered_holds_its_workspace_until_it_is_repaired
        a_source_that_is_missing_or_unknown_holds_its_workspace_until_it_is_repaired
        an_object_that_has_to_be_ready_holds_its_workspace_until_it_is
    ;
    rights:
        a_missing_right_is_named_and_its_grant_is_enough
        a_type_that_gives_rights_is_served_with_no_others
    ;
    targets:
        of_two_initializers_only_the_own_one_goes
        a_selector_says_which_targets_are_served
        targets_of_two_types_are_served_by_one_process
        sources_of_all_targets_of_a_type_come_before_its_one_removal
        a_target_that_is_deleted_is_not_served_until_it_is_back
        a_target_that_is_changed_serves_its_new_type
        a_type_that_is_made_again_is_served_again
    ;
    races:
        an_initializer_that_another_takes_off_meanwhile_stays_off
        twenty_workspaces_are_served_at_once_and_four_at_a_time
        a_workspace_costs_few_requests
        a_workspace_that_waits_is_asked_for_what_it_lacks_alone
        an_agent_that_is_killed_halfway_is_finished_by_the_next
    ;
    statuses: targets_say_whether_they_can_be_served;
    render: what_a_server_has_of_a_target_is_printed;
    take_over:
        what_the_go_agent_has_begun_is_finished
        what_this_agent_has_begun_the_go_agent_finishes
    ;
    operations:
        one_of_two_replicas_works_and_the_other_takes_over
        a_server_that_restarts_finds_the_agent_alive
        probes_and_metrics_are_where_flags_say_and_nowhere_else
        a_config_workspace_may_be_named_in_many_ways
        targets_may_come_from_all_workspaces_that_have_bound_an_export
        the_arguments_of_the_chart_start_the_agent
        an_agent_that_is_asked_to_end_does
        wrong_flags_end_the_agent_with_one_line
    ;
}
