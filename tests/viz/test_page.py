"""Pictures and pages show and save themselves, and overwrite nothing by accident."""

import pytest

from jaxzero.viz import Page, Picture

PICTURE = Picture('<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><text>ä</text></svg>')
PAGE = Page('<!doctype html><p title="it\'s">1 &lt; 2</p>', 300)


@pytest.mark.parametrize("what, text", [
    (Picture("x" * 1234), "<Picture: 1,234 characters of SVG; show it in a notebook, or .save('picture.svg')>"),
    (Page("x" * 100_000), "<Page: 100,000 characters of HTML; show it in a notebook, or .save('page.html')>"),
])  # fmt: skip
def test_what_is_printed_is_a_line_that_says_what_it_is(what, text, capsys):
    print(what)
    assert capsys.readouterr().out == f"{text}\n" and repr(what) == f"{what}" == text


def test_a_picture_is_its_own_html():
    assert PICTURE._repr_html_() == PICTURE.svg


def test_a_page_is_a_frame_that_keeps_it_whole():
    from html.parser import HTMLParser

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            self.found = tag, dict(attrs)

    reader = Reader()
    reader.feed(PAGE._repr_html_())
    tag, attributes = reader.found
    assert tag == "iframe" and attributes["srcdoc"] == PAGE.html and "height:300px" in attributes["style"]
    assert attributes["sandbox"] == "allow-scripts"  # it cannot touch the notebook around it


@pytest.mark.parametrize("what, name, within", [
    (PICTURE, "a.svg", '<?xml version="1.0" encoding="UTF-8"?>\n<svg'), (PICTURE, "a.html", "<!doctype html>"),
    (PAGE, "a.html", "<!doctype html>"),
])  # fmt: skip
def test_saving(tmp_path, what, name, within):
    file = what.save(tmp_path / name)
    text = file.read_text("utf-8")
    assert text.startswith(within) and what[0] in text
    file.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True, or another name"):
        what.save(str(file))
    assert file.read_text() == "mine"
    assert what.save(str(file), overwrite=True) == file and file.read_text("utf-8") == text
    assert [x.name for x in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("what, name, endings", [(PICTURE, "a.png", ".svg or .html"), (PAGE, "a.svg", ".html")])
def test_another_ending_is_refused(tmp_path, what, name, endings):
    with pytest.raises(ValueError, match=f"{name}'\\): use a name that ends in {endings}"):
        what.save(tmp_path / name)
