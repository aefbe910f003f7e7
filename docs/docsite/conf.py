# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Sphinx for the docs site, which tests/tools/docsite.py builds. Nothing here needs a network."""

project = "podwire.cni"
author = "the podwire.cni authors"
project_copyright = f"2026, {author}"

extensions = ["myst_parser", "sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
# Headings have the anchors that GitHub gives them.
myst_heading_anchors = 6
# A link to a file that is not on the site leads to the repository; tests/tools/docsite.py writes it so.
myst_all_links_external = False
# The pages of antsibull-docs refer to Ansible's own documentation; the inventory has the few labels that they need.
intersphinx_mapping = {"ansible": ("https://docs.ansible.com/projects/ansible/latest/", "ansible.inv")}
intersphinx_disabled_reftypes: list[str] = []
default_role = "any"
nitpicky = True

html_theme = "furo"
html_title = "podwire.cni"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"source_repository": "https://github.com/podwire/podwire.cni/"}
antsibull_ext_color_scheme = "default-autodark"
