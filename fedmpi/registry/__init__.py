"""The names of every axis, their options, and the check of a suite against them."""
