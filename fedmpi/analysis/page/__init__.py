"""The HTML report: one self-contained page, drawn as SVG here, made interactive by a small script in it."""
