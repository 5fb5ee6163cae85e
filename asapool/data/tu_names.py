"""The names of the TU data sets: only these are downloaded, so no other text is ever sent to the server."""

from __future__ import annotations

_TOX21 = (
    "AhR", "AR", "AR-LBD", "ARE", "aromatase", "ATAD5", "ER", "ER-LBD", "ER_LBD", "HSE", "MMP", "p53", "PPAR-gamma",
)  # fmt: skip
_OTHERS = (
    "AIDS", "alchemy_full", "aspirin", "benzene", "BZR", "BZR_MD", "COX2", "COX2_MD", "DHFR", "DHFR_MD", "ER_MD",
    "ethanol", "FRANKENSTEIN", "malonaldehyde", "MCF-7", "MCF-7H", "MOLT-4", "MOLT-4H", "Mutagenicity", "MUTAG",
    "naphthalene", "NCI1", "NCI109", "NCI-H23", "NCI-H23H", "OVCAR-8", "OVCAR-8H", "P388", "P388H", "PC-3", "PC-3H",
    "PTC_FM", "PTC_FR", "PTC_MM", "PTC_MR", "QM9", "salicylic_acid", "SF-295", "SF-295H", "SN12C", "SN12CH", "SW-620",
    "SW-620H", "toluene", "UACC257", "UACC257H", "uracil", "Yeast", "YeastH", "ZINC_full", "ZINC_test", "ZINC_train",
    "ZINC_val", "DD", "ENZYMES", "KKI", "OHSU", "Peking_1", "PROTEINS", "PROTEINS_full", "COIL-DEL", "COIL-RAG",
    "Cuneiform", "Fingerprint", "FIRSTMM_DB", "Letter-high", "Letter-low", "Letter-med", "MSRC_9", "MSRC_21",
    "MSRC_21C", "COLLAB", "dblp_ct1", "dblp_ct2", "DBLP_v1", "deezer_ego_nets", "facebook_ct1", "facebook_ct2",
    "github_stargazers", "highschool_ct1", "highschool_ct2", "IMDB-BINARY", "IMDB-MULTI", "infectious_ct1",
    "infectious_ct2", "mit_ct1", "mit_ct2", "REDDIT-BINARY", "REDDIT-MULTI-5K", "REDDIT-MULTI-12K", "reddit_threads",
    "tumblr_ct1", "tumblr_ct2", "twitch_egos", "TWITTER-Real-Graph-Partial", "COLORS-3", "SYNTHETIC", "SYNTHETICnew",
    "Synthie", "TRIANGLES",
)  # fmt: skip
TU_NAMES = frozenset(_OTHERS) | {
    f"Tox21_{assay}_{part}" for assay in _TOX21 for part in ("training", "testing", "evaluation")
}
