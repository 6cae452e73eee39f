"""Chooses the figures of every workload that the table of ratios shows: one of heddle, one of a peer (another library).

The figure of heddle has the newest date. Further rules:
- If one run measured several settings, the table shows overlap auto (if measured) and the faster form of gelu.
- If one run repeated a pair of measurements, the table shows the pair with the median ratio.
- If several runs have the newest date, the table shows the largest ratio. If a peer was measured in some of these runs,
  only these count.

The peer is the fastest one of the same run. If this run has no peer, it is the fastest one of all other runs.
"""
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from table_limits import Limit, limit_of
from table_samples import Run, Sample, all_samples

GROUPS = ("One GPU", "Several GPUs", "Collectives", "CPU")
EQUAL = 0.005  # ratios that differ from 1 by less than this count as equal


@dataclass
class Row:
    workload: str
    group: str
    ours: Sample
    peer_ms: Optional[float]
    peer: str
    peer_run: Optional[Run]
    limit: Optional[Limit]

    @property
    def ratio(self) -> Optional[float]:
        return None if self.peer_ms is None else self.ours.ms / self.peer_ms

    @property
    def slower(self) -> bool:
        return self.ratio is not None and self.ratio >= 1 + EQUAL

    @property
    def two_runs(self) -> bool:
        return self.peer_run is not None and self.peer_run.stem != self.ours.run.stem


def set_by_hand(sample: Sample) -> bool:
    """Returns whether the benchmark chose the lengths of the chunks by hand. Users do not do this."""
    overlap = str(sample.result.get("overlap", ""))
    return overlap.startswith("chunks") or overlap == "whole"


def best_of_run(samples: List[Sample]) -> Sample:
    if len(samples) > 1 and samples[0].peers:
        by_ratio = sorted(samples, key=lambda sample: sample.ms / sample.peers[0][0])
        return by_ratio[len(by_ratio) // 2]
    auto = [sample for sample in samples if sample.result.get("overlap") == "auto"]
    return min(auto or samples, key=lambda sample: sample.ms or 0.0)


def peer_of(ours: Sample, theirs: List[Sample]) -> Tuple[Optional[float], str, Optional[Run]]:
    if ours.peers:
        return ours.peers[0] + (ours.run,)
    same = [sample for sample in theirs if sample.run.stem == ours.run.stem]
    times = [(ms, label, sample.run) for sample in same or theirs for ms, label in sample.peers]
    return min(times, key=lambda time: time[:2]) if times else (None, "", None)


def row_of(workload: str, samples: List[Sample], theirs: List[Sample]) -> Row:
    by_run: Dict[str, List[Sample]] = {}
    for sample in samples:
        if sample.run.order == samples[0].run.order:
            by_run.setdefault(sample.run.stem, []).append(sample)
    peers = {sample.run.stem for sample in theirs}
    with_peer = {stem: found for stem, found in by_run.items() if stem in peers}
    rows = []
    for found in (with_peer or by_run).values():
        ours = best_of_run(found)
        rows.append(Row(workload, ours.group, ours, *peer_of(ours, theirs), limit_of(ours.result)))
    return max(rows, key=lambda row: (row.ratio or 0.0, row.ours.ms or 0.0))


def make_rows() -> Tuple[List[Row], List[str]]:
    """Returns the rows by group, slowest first, and the workloads that only peers have."""
    ours, theirs = all_samples()
    rows = []
    for workload, samples in ours.items():
        samples = [sample for sample in samples if not set_by_hand(sample)]
        if samples:
            rows.append(row_of(workload, samples, theirs.get(workload, [])))
    rows.sort(key=lambda row: (GROUPS.index(row.group), -(row.ratio or 0.0), row.workload))
    return rows, sorted(set(theirs) - set(ours))
