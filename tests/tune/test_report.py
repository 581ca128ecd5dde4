"""The report, read by a browser: headless Chromium, where there is one."""

import shutil

import pytest

from tests.shared.photographs import write_photographs

from .command import TAKES_TIME, found, tune, write_targets

pytestmark = TAKES_TIME

playwright = pytest.importorskip("playwright.sync_api")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """Starts the machine's Chromium, with a Playwright that speaks to it."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Makes one report that has all charts."""
    folder = tmp_path_factory.mktemp("report")
    write_targets(folder)
    arguments = ["--step", "targets:collapsing", "--batch-sizes", "16,64,128", "--memory"]
    found(folder, "targets:loader", *arguments, "--html", "report.html", seconds=5)
    return folder / "report.html"


@pytest.fixture
def page(browser, report):
    """Opens the report, and notes what it asks for and complains of."""
    page = browser.new_page(viewport={"width": 1240, "height": 900})
    page.asked, page.complaints = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(report.as_uri())
    yield page
    page.close()


def test_it_asks_for_nothing_else(page, report):
    assert page.asked == [report.as_uri()]
    assert page.complaints == []
    text = report.read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text


def test_its_charts_have_axes_points_and_a_fit(page):
    headings = page.locator("figure h2").all_inner_texts()
    assert headings == [
        "Workers against samples per second",
        "Batches ahead against waiting",
        "Batch size against throughput",
        "Memory over time",
    ]
    for chart in page.locator("figure svg").all():
        assert chart.locator(".point").count() >= 2
        assert chart.locator(".tick").count() >= 4
        assert chart.locator(".label").count() == 2
    scaling = page.locator("figure").first
    assert scaling.locator("polyline.line").count() == 2
    assert "samples/s" in scaling.inner_text()


def test_points_say_what_they_are(page):
    point = page.locator("figure .point").first
    tip = point.locator(".tip")
    assert tip.evaluate("tip => getComputedStyle(tip).opacity") == "0"
    point.locator(".dot").hover()
    page.wait_for_function("tip => getComputedStyle(tip).opacity == '1'", arg=tip.element_handle())
    assert "samples/s" in (tip.text_content() or "")


def test_the_collapse_is_shown(page):
    assert page.locator("figure .point.bad").count() == 1
    assert "collapse: 128" in page.locator("figure").nth(2).inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1240])
def test_it_fits_the_window_in_light_and_dark(page, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    brightness = [sum(map(int, each[4:-1].split(","))) for each in (ink, paper)]
    assert (brightness[0] < brightness[1]) == (scheme == "light")


def test_names_are_no_markup(browser, tmp_path):
    folder = tmp_path / "<b>&"
    folder.mkdir()
    write_photographs(folder, 8)
    done = tune(
        tmp_path, "<b>&", "--html", str(tmp_path / "r.html"), "--batch-size", "2", seconds=1
    )
    assert done.returncode == 0, done.stderr
    page = browser.new_page()
    page.goto((tmp_path / "r.html").as_uri())
    assert page.locator("h1").inner_text() == "<b>&"
    page.close()


def test_a_report_of_python_has_its_lanes(browser, tmp_path):
    write_targets(tmp_path)
    done = tune(tmp_path, "targets:python", "--html", "r.html", seconds=3)
    assert done.returncode == 0, done.stderr
    page = browser.new_page()
    page.goto((tmp_path / "r.html").as_uri())
    assert "Lanes beside the training" in page.locator("figure h2").all_inner_texts()
    assert page.locator("tr.chosen").count() == 1
    page.close()
