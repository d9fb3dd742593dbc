"""What is known of sets of published steps."""

import pytest

from perfmodel.frameworks import loading
from perfmodel.machines import profiles
from perfmodel.validation.steps import sets as step_sets


def test_names_of_profiles_and_frameworks_exist():
    found = step_sets.known()
    assert {one.profile for one in found.machines} <= set(profiles.names())
    named = {one.framework for one in (*found.frameworks, *found.sets.values())}
    assert named <= set(loading.names())
    assert {one.machine for one in found.sets.values() if one.machine} <= set(profiles.names())


@pytest.mark.parametrize(
    ("machine", "gpu", "profile"),
    [
        ("aurora", "Data Center GPU Max 1550 tile", "aurora"),
        ("alps", "GH200-96GB", "alps"),
        ("H200 cluster", "H200", "dgx-h200"),
        ("dgx-gb200", "GB200", "gb200-nvl72"),
        ("cluster", "H100-96GB-HBM2e", "h100-500w"),
        ("somewhere", "TPU", ""),
    ],
)
def test_a_machine_is_found_by_its_words(machine, gpu, profile):
    assert step_sets.machine({"machine": machine, "gpu": gpu}) == profile


@pytest.mark.parametrize(
    ("columns", "framework"),
    [
        ({"source": "mosaicml/llm-foundry"}, "llm-foundry"),
        ({"source": "NVIDIA/NeMo"}, "megatron-lm"),
        ({"fsdp": "64"}, "fsdp2"),
        ({"fsdp": "1"}, "megatron-lm"),
    ],
)
def test_the_framework_of_an_unknown_file_follows_from_its_rows(columns, framework):
    assert step_sets.of("unknown", columns).framework == framework
