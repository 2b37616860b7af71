//! Attacks on every door, as one command: the tests that `docs/security.md` names, and those that damage, kill, fill disks and
//! move clocks. The tests with chance in them are repeated until the time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::journal::Journal;
use crate::programs::Program;

/// One that takes longer hangs.
const LONGEST: &str = "300";
/// Kills in the first run of a test of random moments; later ones have as many as a run of the suite.
const KILLS: &str = "100";

/// The attacks to run and the time for them.
#[derive(clap::Args)]
pub(crate) struct Attack {
    /// Minutes, after the build; each attack runs once at least
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Only attacks whose kind or name contains one of these: `flood`, `kill`, `mutation` ...
    names: Vec<String>,
}

/// A kind of attack, and the names of its tests in whatever program has them.
struct Kind {
    name: &'static str,
    /// Each run is another one: of the moment of a kill, of the bytes that change.
    has_chance: bool,
    tests: &'static [&'static str],
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "floods and slow peers",
        has_chance: false,
        tests: &[
            "five_thousand_silent_connections_keep_no_controller_out",
            "strangers_from_the_same_address_do_not_keep_a_controller_out",
            "a_flood_of_the_far_end_ends_no_part_and_keeps_no_part_from_beginning",
            "one_controller_cannot_take_all_connections",
            "what_anybody_can_do_often_pushes_no_notice_out",
            "silent_connections_keep_nobody_out",
            "connections_that_show_nothing_are_closed_from_their_first_moment_on",
            "one_address_has_a_share_of_the_places",
            "one_address_does_not_take_all_sessions",
            "a_hostile_sender_does_not_disturb_another",
            "a_flood_allocates_nothing",
        ],
    },
    Kind {
        name: "oversize",
        has_chance: false,
        tests: &[
            "frames_of_64_mib_on_many_connections_end_neither_the_agent_nor_parts_of_others",
            "buffers_of_a_gibibyte_are_refused_at_either_end_before_they_are_filled",
            "what_is_too_large_in_a_message_ends_the_connection_and_not_the_agent",
            "no_text_takes_a_second_or_more_memory_than_is_set_aside_for_it",
            "a_text_that_is_too_long_is_refused_at_once",
            "long_bodies_are_refused",
            "buffers_of_more_than_16_mib_are_refused",
        ],
    },
    Kind {
        name: "mutation",
        has_chance: true,
        tests: &[
            "every_corpus_replays",
            "arbitrary_bytes",
            "mutations_of_the_examples",
            "nonsense_is_refused_in_a_sentence_and_the_server_goes_on",
            "strangers_and_noise_change_nothing",
            "a_path_that_changes_the_control_connection_ends_sessions_only",
            "a_path_that_changes_pairing_ends_it_only",
            "damaged_messages_of_a_known_client_end_its_connection_only",
            "datagrams_that_were_changed_disturb_nobody",
            "damaged_messages_of_a_controller_end_its_connection_and_not_the_agent",
            "damaged_requests_get_an_answer_or_an_end_and_the_server_goes_on",
            "a_path_that_changes_packets_stops_neither_end_of_any_transport_and_no_change_is_delivered",
            "a_path_that_changes_packets_between_agents_ends_neither_and_no_change_is_stored",
            "a_path_that_changes_packets_of_a_recording_stops_nothing_and_no_change_is_recorded",
        ],
    },
    Kind {
        name: RANDOM_KILLS,
        has_chance: true,
        tests: &[
            "an_agent_killed_at_any_moment_loses_and_doubles_nothing",
            "a_controller_killed_at_any_moment_loses_and_doubles_nothing",
            "a_simulation_killed_at_any_moment_is_resumed_to_the_same_results",
            "a_server_killed_at_any_moment_has_every_run_that_it_has_begun",
            "a_wire_killed_at_any_moment_leaves_no_process_and_comes_up_again",
        ],
    },
    Kind {
        name: "kills and races",
        has_chance: true,
        tests: &[
            "a_killed_controller_takes_what_the_agents_have_measured_since",
            "a_killed_agent_costs_one_repetition_and_the_next_goes_on",
            "what_a_killed_agent_had_recorded_is_collected_from_the_next",
            "a_process_killed_at_any_byte_loses_only_the_chunk_that_it_was_writing",
            "a_killed_process_loses_nothing_that_was_on_disk",
            "a_run_killed_in_its_second_repetition_is_resumed_to_its_end",
            "a_wire_that_is_killed_takes_its_programs_with_it",
            "a_killed_wire_leaves_the_machine_as_it_was",
            "a_killed_first_process_is_reported_for_what_it_is",
            "a_far_end_that_dies_leaves_what_was_measured",
            "ten_thousand_races_during_pairings_give_the_service_user_nothing_of_roots",
        ],
    },
    Kind {
        name: "a disk that fills",
        has_chance: false,
        tests: &[
            "a_full_disk_ends_a_run_in_order",
            "a_full_disk_is_called_full",
            "a_full_disk_keeps_what_was_recorded",
            "a_full_disk_ends_the_part_and_what_was_recorded_until_then_is_kept",
            "a_capture_on_a_full_disk_ends_and_the_program_does_not",
            "a_recording_ends_at_its_limit_and_the_next_is_refused",
        ],
    },
    Kind {
        name: "clocks that step",
        has_chance: false,
        tests: &[
            "a_clock_that_jumps_ends_the_run_and_what_was_measured_before_is_kept",
            "a_clock_that_jumps_ends_the_part_and_says_by_how_much",
            "hosts_whose_clocks_are_days_apart_measure_as_if_they_were_not",
            "jumps_are_told_once_and_turning_is_none",
        ],
    },
];

/// The kind whose tests kill a hundred times each.
const RANDOM_KILLS: &str = "kills at random moments";
/// The kind of the tests that only `docs/security.md` names.
const PROMISES: &str = "promises of docs/security.md";

/// A test of a program, and how its runs ended.
struct Row<'p> {
    kind: &'static str,
    has_chance: bool,
    program: &'p Program,
    test: String,
    runs: u32,
    failures: u32,
    took: Duration,
}

pub(crate) fn run(attack: &Attack) -> Result<(), String> {
    let programs = crate::programs::build(&mut crate::test::build()?)?;
    let mut rows = rows(&programs)?;
    if !attack.names.is_empty() {
        let is_wanted = |row: &Row<'_>| {
            attack
                .names
                .iter()
                .any(|part| row.kind.contains(part.as_str()) || row.test.contains(part.as_str()))
        };
        rows.retain(is_wanted);
    }
    if rows.is_empty() {
        return Err("no attack has such a name".to_owned());
    }
    let (journal, began) = (Journal::of_round()?, Instant::now());
    // Kills mostly wait, and hence happen at once.
    let (kills, others): (Vec<_>, Vec<_>) = rows.iter_mut().partition(|row| row.kind == RANDOM_KILLS);
    for row in others {
        row.run(&journal)?;
    }
    thread::scope(|scope| {
        let all: Vec<_> = kills.into_iter().map(|row| scope.spawn(|| row.run(&journal))).collect();
        all.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    })?;
    let until = Duration::from_secs(attack.minutes.saturating_mul(60));
    while rows.iter().any(|row| row.has_chance) && began.elapsed() < until {
        for row in rows.iter_mut().filter(|row| row.has_chance) {
            if began.elapsed() < until {
                row.run(&journal)?;
            }
        }
    }
    journal.read()?.print_skips();
    summary(&rows, began.elapsed())
}

/// The tests of all kinds, as the programs have them.
fn rows(programs: &[Program]) -> Result<Vec<Row<'_>>, String> {
    let mut known: BTreeMap<String, Vec<(&Program, String)>> = BTreeMap::new();
    for program in programs {
        for test in program.tests()? {
            let name = test.rsplit("::").next().unwrap_or_default().to_owned();
            known.entry(name).or_default().push((program, test));
        }
    }
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for (kind, has_chance, name) in listed(&security()?) {
        let Some(found) = known.get(&name) else {
            missing.push(name);
            continue;
        };
        rows.extend(found.iter().map(|(program, test)| Row {
            kind,
            has_chance,
            program,
            test: test.clone(),
            runs: 0,
            failures: 0,
            took: Duration::ZERO,
        }));
    }
    if missing.is_empty() {
        Ok(rows)
    } else {
        Err(format!("no program has these tests: {}", missing.join(", ")))
    }
}

/// The kind, chance and name of every attack: those of the kinds, then those that only the document names.
fn listed(document: &str) -> Vec<(&'static str, bool, String)> {
    let of_kinds = KINDS
        .iter()
        .flat_map(|kind| kind.tests.iter().map(move |test| (kind.name, kind.has_chance, (*test).to_owned())));
    let mut all: Vec<_> = of_kinds.collect();
    let have: BTreeSet<String> = all.iter().map(|(_, _, name)| name.clone()).collect();
    let named = names_of_tests(document).into_iter().filter(|name| !have.contains(name));
    all.extend(named.map(|name| (PROMISES, false, name)));
    all
}

fn security() -> Result<String, String> {
    let path = crate::root().join("docs/security.md");
    std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The names of tests in a document: in back quotes, three words or more in small letters.
fn names_of_tests(document: &str) -> BTreeSet<String> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_name = |text: &&str| {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        text.split('_').count() > 2 && text.split('_').all(is_word)
    };
    quoted.filter(is_name).map(str::to_owned).collect()
}

impl Row<'_> {
    fn run(&mut self, journal: &Journal) -> Result<(), String> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", LONGEST]).arg(&self.program.path).args(["--exact", &self.test]);
        // The first run is the one of the suite.
        let seed = self.runs + 1;
        command.env("TRUNKLINE_ATTACK_SEED", seed.to_string()).env("RUST_BACKTRACE", "0");
        if self.kind == RANDOM_KILLS && seed == 1 {
            command.env("TRUNKLINE_ATTACK_KILLS", KILLS);
        }
        let began = Instant::now();
        let output = self.program.output(journal.of(&mut command))?;
        let took = began.elapsed();
        self.runs += 1;
        self.took += took;
        let verdict = if output.status.success() { "ok" } else { "FAILED" };
        let test = format!("{}: {}: {}", self.kind, self.program.name, self.test);
        let seed = if self.has_chance { format!(", seed {seed}") } else { String::new() };
        anstream::println!("{test:<120} {:>6.1} s  {verdict}{seed}", took.as_secs_f64());
        if !output.status.success() {
            self.failures += 1;
            let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            anstream::println!("{out}{err}({})", output.status);
        }
        Ok(())
    }
}

/// Prints a line for each kind, and fails if a test has failed.
fn summary(rows: &[Row<'_>], took: Duration) -> Result<(), String> {
    anstream::println!("\nattacks: {:.0} s", took.as_secs_f64());
    anstream::println!("{:<32} {:>6} {:>6} {:>7} {:>8}", "kind", "tests", "runs", "failed", "seconds");
    for kind in KINDS.iter().map(|kind| kind.name).chain([PROMISES]) {
        let of_kind: Vec<&Row<'_>> = rows.iter().filter(|row| row.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let sum = |count: fn(&Row<'_>) -> u32| of_kind.iter().map(|row| count(row)).sum::<u32>();
        let seconds: f64 = of_kind.iter().map(|row| row.took.as_secs_f64()).sum();
        let (runs, failed) = (sum(|row| row.runs), sum(|row| row.failures));
        anstream::println!("{kind:<32} {:>6} {runs:>6} {failed:>7} {seconds:>8.0}", of_kind.len());
    }
    let failed: Vec<&str> = rows.iter().filter(|row| row.failures > 0).map(|row| row.test.as_str()).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("attacks that succeeded: {}", failed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_of_tests_are_found_in_a_document() {
        let text = "See `crates/a/tests/b.rs`: `a_door_is_shut`, `the_other_one_too`; `key.pem`, `CLOCK_OF_X`, `two_words`.";
        let found = names_of_tests(text);
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            ["a_door_is_shut", "the_other_one_too"]
        );
    }

    /// Without this, a test that was renamed would be missed at the next run of the attacks only.
    #[test]
    fn every_attack_is_a_test_of_this_workspace() {
        let mut sources = String::new();
        for folder in ["crates", "fuzz", "xtask"] {
            read_all(&crate::root().join(folder), &mut sources);
        }
        let is_missing = |name: &String| !sources.contains(&format!("fn {name}("));
        let missing: Vec<String> =
            listed(&security().unwrap()).into_iter().map(|(_, _, name)| name).filter(is_missing).collect();
        assert!(missing.is_empty(), "no source has these tests: {missing:#?}");
    }

    fn read_all(folder: &Path, into: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("corpus") {
                read_all(&path, into);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                into.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
}
