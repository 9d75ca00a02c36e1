"""Renderers of charts: inline SVG, files for papers, data of a page's script, and CSV."""
