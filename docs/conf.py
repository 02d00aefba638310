"""Configuration of the site: `make docs` builds it into docs/_build/html, with warnings as errors."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from gortho import __version__  # noqa: E402

project = "gortho"
author = "the gortho authors"
release = version = __version__
language = "en_GB"

extensions = [
    "myst_nb",  # Markdown, and notebooks
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
    "extensions",
]
exclude_patterns = ["_build", "gallery/**.ipynb", "sg_execution_times.rst"]
nitpicky = True  # see extensions.nearest for what may stay unresolved

# Copy buttons leave out prompts, and what was printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"

# Markdown
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]

# Notebooks are stored as they were run; a test runs them again.
nb_execution_mode = "off"

# Formulas become MathML, which browsers draw by themselves: nothing is loaded from elsewhere.
html_math_renderer = "mathml"

# API reference
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Gallery: the files of examples/, run once while the site is built.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "parallel": os.cpu_count() or 1,
}

# Pictures of the theory page
plot_formats = [("png", 150)]
plot_html_show_formats = False
plot_html_show_source_link = False

html_theme = "pydata_sphinx_theme"
html_title = "gortho"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "gortho"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    # Code of the gallery needs the room. No page may match two patterns.
    "secondary_sidebar_items": {"[!g]*": ["page-toc"], "g[!a]*": ["page-toc"], "gallery/*": []},
    "use_edit_page_button": False,
}
copyright = "the gortho authors, MIT licence"
html_sidebars = {"index": []}
