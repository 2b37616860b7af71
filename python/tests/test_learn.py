"""Descriptions of links out of recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_executor import processes

import trunkline

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_delivery_trace_becomes_a_profile(tmp_path: Path) -> None:
    learned = trunkline.learn(EXAMPLES / "cellular.down", EXAMPLES / "cellular.up")
    assert ("", "medium", "trace") in [known[:3] for known in learned.known]
    assert "delay" in {unknown.key for unknown in learned.unknown}
    written = learned.write(tmp_path / "radio.toml")
    assert [file.name for file in written] == ["radio.toml", "radio-forward.trace", "radio-backward.trace"]
    assert (tmp_path / "radio-forward.trace").read_bytes() == (EXAMPLES / "cellular.down").read_bytes()
    text = 'name = "it runs"\nduration = "1 s"\n[hosts]\na = {}\nb = {}\n'
    text += '[link.radio]\nbetween = ["a", "b"]\nprofile = "radio.toml"\n'
    text += '[flow.voice]\nfrom = "a"\nto = "b"\ntransport = "udp"\nsource = { kind = "voice", samples = 160 }\n'
    (tmp_path / "experiment.toml").write_text(text)
    run = trunkline.Experiment.load(tmp_path / "experiment.toml").run(store=tmp_path / "store")
    assert run.is_complete
    with pytest.raises(trunkline.TrunklineError, match="cannot write"):
        learned.write(tmp_path / "radio.toml")
    with pytest.raises(trunkline.ExperimentError, match="must end in `.toml`"):
        learned.write(tmp_path / "radio.txt")


def test_records_of_a_run_become_a_profile(experiment: trunkline.Experiment, store: trunkline.Store) -> None:
    run = experiment.run(store=store)
    learned = trunkline.learn(run.records("voice").files[0][2])
    # Its latency is a round trip, which does not tell the directions apart.
    assert ("", "delay") in [known[:2] for known in learned.known]
    assert learned.text.startswith("# Learned 20") and "[forward]" in learned.text


def test_nothing_is_learned_from_what_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("hello\n")
    with pytest.raises(trunkline.ExperimentError, match="`.*text.txt` is in no format"):
        trunkline.learn(tmp_path / "text.txt")
    with pytest.raises(trunkline.ExperimentError, match="does not exist"):
        trunkline.learn(tmp_path / "none.pcap")
    with pytest.raises(trunkline.ExperimentError, match="captures of both ends"):
        trunkline.learn(EXAMPLES / "cellular.down", same_clock=True)


def test_each_of_many_recordings_is_learned_alike_everywhere(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("hello\n")
    recordings = [
        EXAMPLES / "cellular.down",
        text,
        (EXAMPLES / "cellular.down", EXAMPLES / "cellular.up"),
        tmp_path / "none.pcap",
        (EXAMPLES / "cellular.up", EXAMPLES / "cellular.up"),
    ]
    here = trunkline.learn_each(recordings)
    there = trunkline.learn_each(recordings, executor=processes)
    for one, other in zip(here, there, strict=True):
        assert type(one) is type(other)
        if isinstance(one, trunkline.Learned):
            assert isinstance(other, trunkline.Learned)
            assert (one.known, one.unknown, one.warnings) == (other.known, other.unknown, other.warnings)
        else:
            assert str(one) == str(other)
    assert [isinstance(one, trunkline.Learned) for one in here] == [True, False, True, False, False]
    assert str(there[1]).startswith(f"`{text}` is in no format")
    assert str(there[3]) == f"`{tmp_path / 'none.pcap'}` does not exist"
    one, other = here[2], there[2]
    assert isinstance(one, trunkline.Learned) and isinstance(other, trunkline.Learned)
    written = [file.read_bytes() for file in other.write(tmp_path / "a.toml")[1:]]
    (tmp_path / "b").mkdir()
    assert written == [file.read_bytes() for file in one.write(tmp_path / "b" / "a.toml")[1:]]
    assert trunkline.learn_each([]) == trunkline.learn_each([], executor=processes) == []
