"""The experiments by name. A new experiment needs a module and an entry in this registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments import (
    ablation,
    ablation_crowds,
    content_agent,
    content_rules,
    content_splice,
    content_ttfb,
    controller_cost,
    eatbt_fig3,
    lab_verdict,
    news_fig15,
    news_fig16,
    news_lab,
    news_scale,
    news_table1,
    nothing_broken,
    r_baseline,
    r_beyond,
    r_changes,
    r_control,
    r_fig2,
    r_fig5,
    r_fig6,
    r_tofino,
    r_unlike,
    resources_cost,
    sabt_fig5,
    sabt_fig8,
    sabt_measure,
    sabt_shares,
    sim_lab,
    sim_scale,
    sim_unlike,
    sim_verdict,
)
from experiments.experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        r_fig2,
        r_fig5,
        r_baseline,
        r_fig6,
        r_beyond,
        r_unlike,
        r_changes,
        nothing_broken,
        r_control,
        r_tofino,
        news_table1,
        news_fig15,
        news_fig16,
        news_lab,
        sim_lab,
        sim_scale,
        news_scale,
        sim_unlike,
        ablation,
        ablation_crowds,
        sim_verdict,
        lab_verdict,
        controller_cost,
        resources_cost,
        content_ttfb,
        content_splice,
        content_rules,
        content_agent,
        sabt_measure,
        sabt_shares,
        sabt_fig8,
        sabt_fig5,
        eatbt_fig3,
    )
}


class UnknownError(Exception):
    """Raised if no experiment has a requested name."""


def chosen(names: Sequence[str], switch: str) -> list[Experiment]:
    """Return the experiments with the given names; without names, all experiments for a kind of switch.

    Raises UnknownError, which lists the existing names or the kind of switch that an experiment needs.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise UnknownError(f"no experiment {name!r}; there are: {', '.join(EXPERIMENTS)}")
        if (only := EXPERIMENTS[name].switch) and only != switch:
            raise UnknownError(f"{name} is about one kind of switch: run it with SWITCH={only}")
    all_names = [name for name, experiment in EXPERIMENTS.items() if experiment.switch in {"", switch}]
    return [EXPERIMENTS[name] for name in dict.fromkeys(names or all_names)]
