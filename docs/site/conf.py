# The web site of docs/, made by `make site`: Sphinx with the MyST parser.
project = "libllcl"
extensions = ["myst_parser"]
html_theme = "alabaster"
html_theme_options = {"description": "A low-level communication library", "page_width": "1100px", "sidebar_width": "260px"}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_copy_source = False
myst_heading_anchors = 3
# Links to files of the tree lead nowhere on the site.
suppress_warnings = ["myst.xref_missing"]
