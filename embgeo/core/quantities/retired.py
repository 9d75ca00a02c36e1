"""Names of earlier versions that no value has any more, and what takes their place."""

from typing import NamedTuple


class Retired(NamedTuple):
    """A name that is no longer measured."""

    reason: str
    #: The name that replaces it, if there is one.
    replacement: str | None = None

    @property
    def way_out(self) -> str:
        return f"take {self.replacement}" if self.replacement else "leave it out"


_SAME_QUESTION = "another scalar answers the same question"
_ONE_SIDED = "only the raw pair is published with one sign"
_CLUSTERS = "subtracting cluster means leaves about 0 for any partition"
_TAIL = "no verdict, gate or chart reads the fit of a power law"
_OUTPUT = "the table tokens.damaged has the norms of output rows"
_PROBE = "a function of the same probe"
_CENTROID = "tokens.undertrained ranks under-trained tokens"

RETIRED: dict[str, Retired] = {
    "coordinates.first_direction_share": Retired(_SAME_QUESTION, "coordinates.variance_share"),
    **{
        f"coordinates.{name}_without_{count}": Retired(
            "one coordinate without is enough to see what it makes",
            "coordinates.mean_cosine_without_1",
        )
        for name, counts in (("i1", (1, 3, 5)), ("mean_cosine", (3, 5)))
        for count in counts
    },
    "cosine.cosreg_value": Retired("it is (M − 1)/M times the mean cosine", "cosine.mean"),
    **{
        f"cosine.cone_half_angle_{level}": Retired(_SAME_QUESTION, "cosine.cone_half_angle_max")
        for level in ("p95", "p99")
    },
    "cosine.mean_within_clusters": Retired(_CLUSTERS, "cosine.mean_between_clusters"),
    "cosine.i1_within_clusters": Retired(_CLUSTERS, "isotropy.i1_unit_rows"),
    "frequency.centroid_cosine": Retired(_SAME_QUESTION, "frequency.centroid_distance"),
    "frequency.probe_accuracy": Retired(_PROBE, "frequency.probe_auc"),
    "frequency.probe_loss": Retired(_PROBE, "frequency.probe_auc"),
    "frequency.frequency_r2": Retired(_SAME_QUESTION, "frequency.probe_auc"),
    "frequency.mean_unigram_cosine": Retired(_SAME_QUESTION, "frequency.centroid_distance"),
    "frequency.first_unigram_cosine": Retired(_SAME_QUESTION, "frequency.probe_auc"),
    "frequency.weighted_symmetry_first": Retired(_SAME_QUESTION, "frequency.weighted_mean_cosine"),
    "frequency.weighted_symmetry_second": Retired(_SAME_QUESTION, "frequency.weighted_isoscore"),
    "hidden.combination_residual": Retired(
        "the convention of the hull's distance states the certificate", "hidden.hull_distance"
    ),
    "isotropy.log_i1": Retired("it is the logarithm of I1", "isotropy.i1"),
    **{
        f"isotropy.z_random_{name}": Retired(
            "500 products of all rows for a number that nothing reads", "isotropy.i2"
        )
        for name in ("std", "min", "max")
    },
    "isotropy.i_sphere": Retired("it takes longest and ranks matrices as I1", "isotropy.i1"),
    "isotropy.i2_unit_rows": Retired(_SAME_QUESTION, "isotropy.i1_unit_rows"),
    "isotropy.i1_unit_mean_sign": Retired(_ONE_SIDED, "isotropy.i1_unit"),
    "isotropy.i2_unit_mean_sign": Retired(_ONE_SIDED, "isotropy.i2_unit"),
    "isotropy.i1_sampled_mean_sign": Retired(_ONE_SIDED, "isotropy.i1_sampled"),
    "isotropy.i2_sampled_mean_sign": Retired(_ONE_SIDED, "isotropy.i2_sampled"),
    "isotropy.symmetry_first": Retired(
        "it is 1 − spectrum.mean_norm_ratio", "spectrum.mean_norm_ratio"
    ),
    "isotropy.symmetry_second": Retired(_SAME_QUESTION, "isotropy.isoscore"),
    "spectrum.stable_rank": Retired("it is 1/spectrum.top_share", "spectrum.top_share"),
    "spectrum.nesum": Retired(_SAME_QUESTION, "spectrum.top_share"),
    "spectrum.participation_ratio": Retired(_SAME_QUESTION, "spectrum.effective_rank"),
    "spectrum.singular_entropy": Retired(
        "it is ln d − ln spectrum.effective_rank", "spectrum.effective_rank"
    ),
    **{
        f"spectrum.energy_{percent}": Retired(_SAME_QUESTION, "spectrum.energy_90")
        for percent in (50, 95, 99)
    },
    "spectrum.decay_slope": Retired("the table spectrum.decay has the fits"),
    "spectrum.tail_exponent": Retired(_TAIL),
    "spectrum.tail_distance": Retired(_TAIL),
    "spectrum.tail_p": Retired(_TAIL),
    "subspace.rank_input": Retired(
        "the convention of the distance states both ranks", "spectrum.numerical_rank"
    ),
    "subspace.rank_output": Retired(
        "the convention of the distance states both ranks", "subspace.distance"
    ),
    "tokens.masked_rows": Retired("a note and the provenance say which rows are masked"),
    "tokens.surplus_rows": Retired("a note says which rows are beyond the vocabulary"),
    "tokens.one_sided_rows": Retired(
        "the table tokens.damaged has the states of both sides", "tokens.output_damaged_rows"
    ),
    "tokens.norm_spread": Retired("smallest, median and largest norm say it", "tokens.norm_max"),
    **{
        f"tokens.output_{name}": Retired(_OUTPUT, "tokens.output_damaged_rows")
        for name in (
            "damaged_gap",
            "norm_min",
            "norm_median",
            "norm_max",
            "norm_rms",
            "norm_spread",
        )
    },
    "tokens.clump_share": Retired("rows of the clump over kept rows", "tokens.clump_rows"),
    **{f"tokens.centroid_{name}": Retired(_CENTROID) for name in ("excess", "near_rows", "knee")},
    "tokens.antihub_share": Retired(_SAME_QUESTION, "tokens.hubness"),
    "tokens.robin_hood": Retired(_SAME_QUESTION, "tokens.hubness"),
    "tokens.intrinsic_dimension_trimmed": Retired(_SAME_QUESTION, "tokens.intrinsic_dimension"),
    "tokens.local_dimension": Retired(_SAME_QUESTION, "tokens.intrinsic_dimension"),
}
