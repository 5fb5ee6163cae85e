"""A hierarchy as JSON, NetworkX, SVG, PNG and in a notebook."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import asapool
from asapool.data import load
from asapool.errors import ConfigError, DataError
from asapool.insight.drawing.canvas import canvas, spread
from asapool.insight.drawing.overlays import PALETTE, coloring
from asapool.insight.importance import KINDS
from asapool.models import ModelConfig, build
from tests.insight.test_composition import path_of_eight

GRAPHS = load("synthetic:motifs?graphs=2&nodes=9")
MODEL = build(ModelConfig(hidden=8), GRAPHS.num_features, 2, seed=1)


@pytest.fixture(scope="module")
def molecule():
    """Caffeine, explained by a model that has learned nothing."""
    from asapool.data.molecule_table import pack_molecules
    from asapool.data.molecules import read_smiles

    text = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"
    graphs = pack_molecules(read_smiles([text]), ids=("caffeine",), source_text=(text,), class_names=("no", "yes"))
    return asapool.explain(build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0), graphs)


def test_json_gives_back_every_number():
    reported = asapool.explain(MODEL, GRAPHS, 1)
    again = asapool.Hierarchy.from_json(reported.to_json())
    assert again.to_json() == reported.to_json()
    assert repr(again) == repr(reported)
    assert again.levels[1].attention.tolist() == reported.levels[1].attention.tolist()
    assert again.truth.tolist() == reported.truth.tolist()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no", "this is not"), ("[]", '"format": "asapool.hierarchy"'),
        ('{"format": "asapool.hierarchy", "version": 2}', "version 2"),
        ('{"format": "asapool.hierarchy", "version": 1}', "damaged"),
    ],
)  # fmt: skip
def test_json_of_something_else_is_refused(text, says):
    with pytest.raises(DataError, match=says):
        asapool.Hierarchy.from_json(text)


def test_json_with_lists_of_the_wrong_length_is_refused():
    reported = json.loads(asapool.explain(MODEL, GRAPHS, 1).to_json())
    reported["importance"]["gradient"].pop()
    with pytest.raises(DataError, match="different lengths"):
        asapool.Hierarchy.from_json(json.dumps(reported))


def test_networkx_has_the_clusters_with_their_original_members():
    pooled = path_of_eight().to_networkx(1)
    assert pooled.nodes[1] == {"medoid": 3, "fitness": 0.5, "members": {2: 0.5, 3: 0.25, 4: 0.25}}
    assert pooled.edges[1, 2]["weight"] == 2.0
    assert path_of_eight().to_networkx(2).nodes[1]["members"] == {3: 0.125, 4: 0.0625, 5: 0.4375, 6: 0.1875, 7: 0.1875}
    first = asapool.explain(MODEL, GRAPHS, 0).to_networkx()
    assert set(first.nodes[0]) == {*KINDS, "truth", "name"}
    with pytest.raises(ConfigError, match="level must be 0 to 2"):
        path_of_eight().to_networkx(3)


def test_every_node_has_a_home_where_its_share_is_largest():
    home, colour = coloring(path_of_eight(), 1)
    assert home.tolist() == [
        0,
        0,
        1,
        1,
        2,
        3,
        3,
        3,
    ]  # 3 and 4 stay in their own clusters, though 2's and 3's share is larger
    assert len(set(colour.tolist())) == 4
    assert coloring(path_of_eight(), 2).home.tolist() == [
        0,
        0,
        0,
        0,
        0,
        1,
        1,
        1,
    ]  # 3 ties, and 1 is nearer to it than 6
    assert len(PALETTE) == 7


def test_clusters_that_touch_differ_in_colour_as_far_as_the_colours_go():
    from asapool.insight.drawing.overlays import _colours

    hub = np.zeros(9, np.int64), np.arange(1, 10)  # ten clusters of a node each; the first touches all others
    colour = _colours(np.arange(10), 10, *hub)
    assert (colour[1:] != colour[0]).all()
    pairs = np.array([(a, b) for a in range(8) for b in range(a)]).T  # eight that all touch, and seven colours
    assert sorted(_colours(np.arange(8), 8, *pairs).tolist()) == [0, 0, 1, 2, 3, 4, 5, 6]


def test_pictures_are_whole_and_escape_what_users_wrote(molecule):
    import dataclasses

    for reported in (molecule, path_of_eight()):
        rude = dataclasses.replace(reported, id="<script>alert(1)</script>", classes=("<b>", "&"))
        for view in [{"level": 1}, {"level": 0}] + [{"colour": kind} for kind in reported.importance]:
            root = ET.fromstring(rude.to_svg(**view))
            assert "var(" not in rude.to_svg(**view)
            assert not [e for e in root.iter() if e.tag.endswith("script")]
        page = rude._repr_html_()
        assert "<script" not in page
        assert page.count("<svg") == len(reported.levels) + len(reported.importance)


def test_atoms_are_drawn_where_the_canvas_says(molecule):
    ground = canvas(molecule)
    assert ground.molecule
    assert molecule.names[:3] == ("C", "N", "C")
    bonds = np.linalg.norm(ground.position[molecule.source] - ground.position[molecule.target_node], axis=1)
    assert np.allclose(bonds, ground.unit, rtol=0.15)  # RDKit's bonds are equally long
    assert (ground.position > 0).all()
    assert (ground.position < [ground.width, ground.height]).all()


def test_a_text_that_is_another_molecule_is_not_drawn_as_one():
    import dataclasses

    for text in ("CCO", "CC(C)CCCCC", "C" * 8, "not a molecule"):
        other = dataclasses.replace(path_of_eight(), text=text)
        assert canvas(other).molecule == (text == "C" * 8)


def test_layouts_keep_components_apart_and_are_the_same_each_time():
    source, target = np.array([0, 1, 2, 3, 4, 3]), np.array([1, 0, 3, 2, 3, 4])
    p = spread(6, source, target)
    assert (p == spread(6, source, target)).all()
    gaps = np.linalg.norm(p[:, None] - p[None], axis=2) + np.eye(6)
    assert gaps.min() > 0.5
    large = np.arange(199)
    assert np.isfinite(spread(200, large, large + 1)).all()


def test_a_picture_s_name_decides_its_format(tmp_path, molecule):
    from PIL import Image

    for one, view in ((path_of_eight(), {"level": 1}), (molecule, {"colour": "occlusion"})):
        one.save_picture(tmp_path / "a.png", width=320, **view)
        with Image.open(tmp_path / "a.png") as image:
            assert image.format == "PNG"
            assert image.size[0] == 320
            assert len(image.convert("RGB").getcolors(100_000)) > 20
        one.save_picture(tmp_path / "a.pdf", **view)
        assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
        one.save_picture(tmp_path / "a.svg", **view)
        assert (tmp_path / "a.svg").read_text() == one.to_svg(width=960, **view)
    with pytest.raises(ConfigError, match=r"a\.jpg: the name of a picture must end in one of \.svg, \.png, \.pdf"):
        molecule.save_picture(tmp_path / "a.jpg")
    assert {file.name for file in tmp_path.iterdir()} == {"a.png", "a.pdf", "a.svg"}


def test_a_png_shows_what_the_svg_says(tmp_path):
    """Red where the circle is, its half-transparent neighbour mixed with white, a shifted line, and white elsewhere."""
    import io

    from PIL import Image

    from asapool.insight.drawing.figure import svg_image

    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 50 20" width="100" height="40">'
        '<circle cx="10" cy="10" r="5" fill="#ff0000"/>'
        '<circle cx="25" cy="10" r="5" fill="#ff0000" fill-opacity="0.5"/>'
        '<g transform="translate(30 0)" stroke="#0000ff" stroke-width="4"><path d="M10 2L10 18" fill="none"/></g>'
        '<path d="M45 15L45 15" stroke="#00ff00" stroke-width="6" stroke-linecap="round"/></svg>'
    )
    with Image.open(io.BytesIO(svg_image(svg, "png"))) as image:
        pixels = image.convert("RGB")
        assert pixels.size == (100, 40)
        assert [pixels.getpixel(at) for at in ((20, 20), (80, 20), (80, 1), (2, 2), (90, 30))] == [
            (255, 0, 0), (0, 0, 255), (255, 255, 255), (255, 255, 255), (0, 255, 0),
        ]  # fmt: skip
        assert pixels.getpixel((50, 20)) in {(255, 127, 127), (255, 128, 128)}
