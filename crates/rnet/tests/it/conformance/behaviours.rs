//! All behaviours, with one test of each per transport.

/// Creates a module per named transport with one test per behaviour. Attributes of a transport apply to each
/// of its tests.
macro_rules! conformance {
    (@test [$($attributes:tt)*] $transport:ty, $place:ident, $file:ident, $behaviour:ident) => {
        #[test]
        $($attributes)*
        fn $behaviour() {
            let name = concat!(stringify!($place), "::", stringify!($behaviour));
            if let Some(mut transport) = <$transport>::open(name) {
                crate::conformance::$file::$behaviour(&mut transport);
            }
        }
    };
    (@ $attributes:tt $transport:ty, $place:ident { $($file:ident :: $behaviour:ident),* $(,)? }) => {
        mod $place {
            use crate::conformance::transport::Transport as _;
            $(conformance!(@test $attributes $transport, $place, $file, $behaviour);)*
        }
    };
    ($($(#[$attribute:meta])* $transport:ty as $place:ident),*) => {
        $(conformance!(@ [$(#[$attribute])*] $transport, $place {
            delivery::all_sizes_arrive_whole_and_in_order,
            delivery::several_publishers_are_merged_in_order,
            delivery::overruns_are_counted_exactly,
            delivery::overruns_of_large_messages_are_counted_exactly,
            delivery::reliable_waits_for_a_slow_reader,
            delivery::reliable_waits_for_a_slow_reader_of_large_messages,
            delivery::reliable_refuses_and_gives_the_message_back,
            delivery::reliable_detaches_a_stopped_reader,
            delivery::slow_reader_with_progress_is_not_detached,
            joining::either_may_start_first,
            joining::matches_are_reported,
            joining::waits_end_in_time,
            joining::a_callback_and_a_stream_know_their_publishers,
            joining::late_joiners_get_the_last_small_messages,
            joining::late_joiners_get_the_last_large_messages,
            history::the_default_keeps_the_last_ten,
            history::keep_all_skips_nothing,
            history::reliable_subscribers_keep_all,
            history::reliable_subscribers_may_keep_the_last,
            history::lapped_messages_that_would_be_skipped_are_not_lost,
            history::latest_of_several_publishers_skips_the_others,
            history::subscriber_reports_its_backlog,
            taking::keep_last_skips_older_messages,
            taking::latest_skips_all_but_the_newest,
            taking::a_loan_that_is_dropped_sends_nothing,
            taking::a_loan_may_be_cut_short,
            taking::receive_without_messages_returns_nothing,
            taking::held_samples_are_limited_and_released,
            taking::samples_outlive_their_endpoints_and_node,
            taking::oversized_message_is_refused_without_loss,
            patterns::a_call_has_its_replies_and_its_end,
            patterns::a_cancelled_call_ends_its_handler,
            patterns::late_replies_are_dropped_and_counted,
            patterns::a_full_backlog_refuses,
            patterns::a_server_that_closes_is_named,
            patterns::a_caller_that_leaves_ends_its_calls,
            patterns::a_goal_has_feedback_and_an_end,
            patterns::goal_policies_while_a_goal_runs,
            patterns::one_driver_has_authority_at_a_time,
            patterns::a_silent_driver_is_followed_by_the_fallback,
            patterns::jobs_are_done_once_or_handed_back,
            talk::log_lines_keep_their_node_and_level,
            talk::a_will_is_read_when_its_node_dies,
            talk::a_publisher_that_is_closed_leaves_no_will,
            talk::a_pair_of_topics_carries_both_ways,
        });)*
    };
}
