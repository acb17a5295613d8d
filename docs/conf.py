"""The documentation site: the repository's pages as they lie there, and a reference of what is public.

The repository's root is Sphinx's source: a link from file to file is a link between pages of the site.
"""

import re

from sphinx.application import Sphinx

import fedmpi

project = "fedmpi"
author = "The fedmpi developers"
version = release = fedmpi.__version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/**", "bench/**.md", "jobs/**.md", "results/README.md"]
exclude_patterns = [".*", "build", "results/runs"]

autodoc_member_order = "bysource"
default_role = "code"
myst_heading_anchors = 4
nb_execution_mode = "force"  # a cache knows the notebooks' code, not fedmpi's
nb_execution_in_temp = nb_execution_raise_on_error = True
nb_execution_timeout = 300  # seconds for a cell, on a busy machine, too
nb_output_stderr = "remove"  # such as warnings of libraries about notebooks
numpydoc_show_class_members = False  # autodoc shows them
python_maximum_signature_line_length = 88
smartquotes = False  # pages quote what a suite's file holds
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "fedmpi"
html_static_path = ["site/site.css"]
html_css_files = ["site.css"]
html_extra_path = ["site/index.html"]
html_copy_source = html_show_sourcelink = html_show_copyright = False

BELOW = {
    "bench/README": "/bench/*/README",
    "bench/leaderboard/README": "/bench/leaderboard/history",
    "docs/reproduction": "/docs/reproduction/*",
    "jobs/README": "/jobs/*/README",
}
"""Pages, and the ones that stand below them in the navigation."""


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Make each list of the first page a part of the navigation, and give pages the ones below them."""
    if page == root_doc:
        for part in source[0].split("\n## ")[1:]:
            caption, _, text = part.partition("\n")
            links = re.findall(r"^- \[(.+?)\]\((.+?)\)", text, re.M)
            if links:
                source[0] += toctree(f":caption: {caption}", *(f"{title} <{path}>" for title, path in links))
    elif page in BELOW:
        source[0] += toctree(":glob:", BELOW[page])


def toctree(option: str, *entries: str) -> str:
    """Return a part of the navigation that its page does not show."""
    return "\n".join(["\n\n```{toctree}", ":hidden:", ":titlesonly:", option, "", *entries, "```\n"])


def setup(app: Sphinx) -> None:
    """Tell Sphinx what to call."""
    app.connect("source-read", add_navigation)
