//! The role `publish`, as what it takes the place of is judged: each scenario runs the real binary between a real API server
//! as service cluster and a simulated kcp, and a real one where there is one (`KCP_BIN`, or `kcp` in `PATH`).
//!
//! `EDGE_SYNCER_PUBLISH_BIN` names another binary to test. What simulation and tests take for granted of kcp is in
//! `assumptions`, which both have to pass.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "simulated_kcp/agent.rs"]
mod of_role;
#[allow(dead_code, reason = "the role init needs more of it")]
#[path = "simulated_kcp/mod.rs"]
mod simulated;
#[allow(dead_code, reason = "the role init needs more of it")]
#[path = "simulated_kcp/stage.rs"]
mod stage;

#[path = "publish_role/applied.rs"]
mod applied;
#[path = "publish_role/assumptions.rs"]
mod assumptions;
#[path = "publish_role/attacked.rs"]
mod attacked;
#[path = "publish_role/belonging.rs"]
mod belonging;
#[path = "publish_role/chart.rs"]
mod chart;
#[path = "publish_role/ending.rs"]
mod ending;
#[path = "publish_role/faults.rs"]
mod faults;
#[allow(dead_code, reason = "hostile needs more of it")]
#[path = "hostile/front.rs"]
mod front;
#[path = "publish_role/hostile.rs"]
mod hostile;
#[path = "publish_role/judge.rs"]
mod judge;
#[path = "publish_role/objects.rs"]
mod objects;
#[path = "publish_role/pairs.rs"]
mod pairs;
#[path = "publish_role/publishing.rs"]
mod publishing;
#[path = "publish_role/related.rs"]
mod related;
#[path = "publish_role/rules.rs"]
mod rules;
#[path = "publish_role/running.rs"]
mod running;
#[path = "publish_role/states.rs"]
mod states;
#[path = "publish_role/take_over.rs"]
mod take_over;
#[path = "publish_role/watched.rs"]
mod watched;
#[path = "publish_role/whose.rs"]
mod whose;
#[allow(dead_code, reason = "the role init needs more of it")]
#[path = "simulated_kcp/wire.rs"]
mod wire;
#[path = "publish_role/world.rs"]
mod world;
#[path = "publish_role/wrong.rs"]
mod wrong;

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
    publishing:
        a_type_is_published_and_objects_of_it_have_copies
        a_type_that_changes_back_has_its_first_schema_again
        the_flag_of_the_export_leads_to_its_slice_or_to_its_own_urls
        a_slice_may_be_in_another_workspace_than_its_export
        what_is_not_there_or_wrong_ends_the_agent_with_its_name
        consumers_see_what_a_projection_makes_of_a_type
        versions_and_scope_are_those_of_the_projection
        a_wrong_one_is_said_in_an_event_and_holds_up_no_other
        a_built_in_type_is_published_in_another_group
        what_others_have_put_into_the_export_stays
        claims_are_added_as_syncing_needs_them
        a_type_may_be_published_and_not_synced
    ;
    wrong:
        of_two_that_publish_one_type_the_older_one_does
        a_rule_that_an_edit_breaks_ends_the_sync_and_no_deletion
        a_schema_that_another_agent_makes_keeps_its_name_in_the_export
    ;
    objects:
        two_workspaces_may_have_objects_of_one_name
        what_others_change_in_a_copy_stays_until_kcp_changes_it_too
        a_status_goes_back
        a_status_that_changes_is_one_request_to_the_workspace
        an_object_goes_after_its_copy
        a_state_that_is_lost_is_made_again
        a_copy_that_loses_its_marks_is_found_or_adopted
        an_object_that_is_there_already_becomes_the_copy
        a_type_without_a_status_subresource_is_no_trouble
        objects_in_no_namespace_have_copies_too
        a_consumer_sees_what_has_become_of_an_object_and_nothing_of_the_provider
     what_goes_without_waiting_takes_the_copy_that_was_just_made_along;
    rules:
        a_check_names_the_rights_that_what_belongs_to_objects_needs
        a_check_names_a_namespace_that_is_not_there_and_a_type_with_two_owners
        names_come_from_templates_or_the_old_form_and_stay
        filters_say_what_has_copies_and_nothing_about_its_end
        rules_change_what_is_copied_and_what_status_goes_back
        a_status_that_kcp_does_not_keep_is_said_once
        paths_of_workspaces_are_known_where_that_is_asked_for
        metadata_that_is_not_the_consumers_is_not_copied
    ;
    related:
        a_secret_of_the_consumer_goes_to_the_copy_and_is_let_go_with_it
        a_secret_of_the_provider_stays_with_the_consumer
        a_secret_of_the_provider_is_cleaned_up_where_that_is_asked_for
        related_objects_are_found_by_templates_lists_and_labels
        a_related_object_may_be_in_other_namespaces_at_both_ends
        a_related_object_may_be_of_another_type_at_the_other_end
        a_related_object_with_the_name_of_its_primary_comes_to_rest
        a_claim_that_is_not_accepted_holds_up_no_other_object
        what_belongs_to_an_object_is_let_go_though_its_copy_went_first
        a_name_that_one_side_gives_deletes_nothing_of_the_other
    ;
    whose:
        what_a_consumer_has_made_is_not_overwritten_nor_deleted
        what_has_come_from_a_workspace_does_not_go_back_there
        objects_of_two_namespaces_do_not_share_what_belongs_to_one
        of_several_that_are_labelled_as_a_copy_none_is_written_or_deleted
        a_secret_that_is_called_as_a_state_is_not_touched
        an_object_of_many_elements_has_a_copy_like_any_other
    ;
    watched:
        a_related_object_that_changes_is_synced_by_itself
        whichever_side_it_comes_from
        the_status_of_a_related_object_goes_with_it
        a_status_that_has_no_place_is_said_once
        rules_for_statuses_of_related_objects_are_followed
    ;
    attacked:
        a_secret_that_would_let_somebody_in_goes_nowhere
        no_object_leads_to_the_namespace_of_the_agent
        a_copy_of_which_somebody_edits_a_label_is_its_objects_still
        an_object_that_names_too_many_others_is_said_to_and_ends
        related_objects_that_are_too_long_for_one_answer_are_read_in_parts
        objects_that_a_published_resource_leaves_are_said
    ;
    running:
        one_of_two_replicas_works_and_the_other_takes_over
        two_agents_share_out_what_is_published
        an_edit_leaves_one_loop_and_a_delete_none
        a_workspace_that_unbinds_is_left_with_its_copies
        kcp_that_is_away_costs_no_copy_and_what_has_changed_is_caught_up_with
        an_agent_that_is_killed_anywhere_is_finished_by_the_next
        probes_and_metrics_say_what_is_published
        a_group_of_the_service_cluster_that_fails_stops_nothing_else
    ;
    take_over:
        what_the_go_agent_has_left_is_continued
        agents_that_take_turns_make_nothing_again
        an_agent_of_another_name_finds_the_copies_of_the_former_one
    ;
    hostile:
        what_has_come_from_one_workspace_is_not_overwritten_by_another
        an_object_of_the_provider_is_no_copy_of_what_a_consumer_names
        the_copy_of_one_workspace_is_not_taken_over_by_another_of_its_name
        what_an_object_does_not_name_any_more_is_let_go
        an_object_ends_though_what_belongs_to_it_cannot_be_named_any_more
        what_belonged_to_an_object_by_former_rules_is_let_go_with_it
        what_no_rule_names_any_more_is_let_go_at_once
        names_that_consumers_write_lead_to_no_other_request
        an_object_ends_though_its_copy_is_nested_too_deep_to_be_read
        a_secret_that_is_not_the_objects_own_stays_where_it_is
        an_object_that_would_take_all_memory_is_refused_and_holds_up_no_other
        two_objects_that_would_have_one_name_are_refused
    ;
    belonging:
        a_change_of_what_an_object_owns_is_synced_at_once
        a_change_of_what_labels_lead_to_is_synced_at_once
        a_change_of_what_cannot_belong_to_an_object_costs_no_request
        what_two_objects_have_goes_with_the_last_of_them
        a_status_goes_along_where_that_is_asked_for
    ;
    ending:
        an_object_ends_though_the_claim_for_what_it_names_is_not_accepted
        an_object_ends_though_the_path_of_its_workspace_is_not_shown_any_more
        the_copy_of_another_agent_stays_when_an_object_ends
        a_copy_that_another_agent_takes_is_said_and_made_its_own_again
        an_object_that_does_not_wait_leaves_neither_state_nor_finalizer
        a_copy_whose_object_went_unseen_is_said_and_its_end_frees_what_that_named
    ;
    states:
        an_object_with_two_places_at_the_other_end_follows_to_both
        what_belongs_to_an_object_is_found_again_though_its_state_is_deleted
        a_state_goes_along_when_its_type_is_stored_in_another_version
        a_state_is_read_and_written_once_for_all_that_has_changed
        more_state_than_a_secret_holds_is_said_and_the_status_goes_back
    ;
    pairs:
        only_what_is_there_is_named_at_the_object
        what_becomes_of_a_related_object_is_said_at_it
        one_that_fails_holds_up_no_other
        a_schema_of_somebody_else_may_have_no_status
        nothing_that_a_secret_holds_is_in_the_log
    ;
    applied:
        an_object_that_is_emptied_stays_an_object
        what_others_add_stays_and_what_the_object_drops_goes
        writes_of_before_and_after_the_flag_belong_together
        a_related_object_is_applied_too
    ;
    chart: the_arguments_of_the_chart_start_the_agent;
}
