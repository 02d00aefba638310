"""Symmetries other than O(A), searched for and judged if O(A) fails (M15-M17).

A `claim` says what a law may know in addition to a form: handedness, directions, an origin, several spaces, a skew
form. Its unknowns are one vector θ, and for given θ the best predictor is a linear solve, as for a form alone: a
`family` (M12). Of all `claims` worth trying, each has `starts` of its own (those of skew forms in
`skew`) and a `search`; a `fit` gives its predictor and its twins, and what these accept is the `answer`, a `value` of
the discovery, with other `readings`. `widen` goes through these steps.
"""
