"""What a release is made by: versions agree, workflows are pinned and may do little, bounds are declared."""

import re
import sys
import tomllib

import pytest
import yaml
from packaging.version import Version

import jaxzero
from tests.documents import ROOT, text

sys.path.append(str(ROOT / ".ci"))
import lowest  # noqa: E402  # ty: ignore

PROJECT = tomllib.loads(text("pyproject.toml"))["project"]
WORKFLOWS = sorted(path.name for path in (ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path.name for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def workflow(name):
    return yaml.safe_load(text(f".github/workflows/{name}"))


def test_the_version_is_one():
    assert PROJECT["version"] == jaxzero.__version__ == yaml.safe_load(text("CITATION.cff"))["version"]


def test_the_citation_says_what_the_project_says():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_urls_are_those_of_the_site():
    site = re.search(r"^site_url: (.*)$", text("docs/mkdocs.yml"), flags=re.MULTILINE)[1]
    assert PROJECT["urls"]["Documentation"] == site
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues"} <= PROJECT["urls"].keys()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_are_pinned_and_may_do_little(name):
    jobs = workflow(name)
    assert jobs["permissions"] == {"contents": "read"}
    allowed = {"publish": {"id-token", "pages"}}
    for job, does in jobs["jobs"].items():
        assert set(does.get("permissions", {})) <= allowed.get(job, set()) and does["timeout-minutes"] <= 90
    used = re.findall(r"uses: (\S+)@(\S+)(.*)", text(f".github/workflows/{name}"))
    assert used and all(re.fullmatch("[0-9a-f]{40}", commit) and "# v" in note for _, commit, note in used)
    assert "secrets." not in text(f".github/workflows/{name}")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_call_targets_that_there_are(name):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), flags=re.MULTILINE))
    called = set(re.findall(r"run: make ([a-z-]+)", text(f".github/workflows/{name}")))
    assert called and called <= targets


def test_every_python_that_is_promised_is_tested():
    promised = {kind.rpartition(" ")[2] for kind in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", kind)}
    tested = workflow("tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert promised <= set(tested) and min(promised, key=Version) == PROJECT["requires-python"].removeprefix(">=")


def test_every_dependency_has_a_lower_bound_that_the_constraints_keep():
    bounds = lowest.lowest(PROJECT)
    tested = dict(line.split("==") for line in text("constraints.txt").splitlines() if "==" in line)
    assert bounds["jax"] == "0.7.2" and len(bounds) > 12
    assert all(Version(tested[name]) >= Version(least) for name, least in bounds.items())


@pytest.mark.parametrize("requirement", ["flax", "flax>=0.11,<1", "flax==0.11"])
def test_another_kind_of_bound_is_refused(requirement):
    with pytest.raises(ValueError, match="flax.*write a lower bound"):
        lowest.lowest({"name": "jaxzero", "dependencies": [requirement], "optional-dependencies": {}})


def test_the_forms_for_issues_can_be_read():
    assert FORMS == ["bug_report.yml", "config.yml", "feature_request.yml"]
    forms = [yaml.safe_load(text(f".github/ISSUE_TEMPLATE/{name}")) for name in FORMS]
    assert all({"name", "description", "body"} <= form.keys() for form in forms if "contact_links" not in form)


def test_a_bug_report_asks_for_what_doctor_says():
    fields = {field["id"]: field for field in yaml.safe_load(text(".github/ISSUE_TEMPLATE/bug_report.yml"))["body"]}
    assert "jaxzero doctor" in fields["doctor"]["attributes"]["label"] and fields["doctor"]["validations"]["required"]


def test_a_pull_request_is_asked_what_contributing_asks():
    def questions(document):
        return re.findall(r"^- \[ \] .*$", text(document), flags=re.MULTILINE)

    assert questions(".github/pull_request_template.md") == questions("CONTRIBUTING.md") != []


def test_the_readme_of_the_package_has_no_relative_links():
    """An index shows it without the files beside it."""
    shown = text("README.md")
    hooks = tomllib.loads(text("pyproject.toml"))["tool"]["hatch"]["metadata"]["hooks"]
    for rule in hooks["fancy-pypi-readme"]["substitutions"]:
        shown = re.sub(rule["pattern"], rule["replacement"], shown)
    links, home = re.findall(r"\]\(([^)]+)\)", shown), PROJECT["urls"]["Source"]
    assert len(links) > 20 and not [link for link in links if not link.startswith(("https://", "#"))]
    assert f"]({home.replace('github', 'raw.githubusercontent')}/main/notebooks/pictures/browser.png)" in shown
    assert f"]({home}/blob/main/notebooks/choosing.md)" in shown
