"""One reflection takes x to the reference e: in the plane with lengths, and in the plane with time."""

import matplotlib.pyplot as plt
import torch

from gortho import QuadraticForm
from gortho.groups import align_unit

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
s = torch.linspace(-1.4, 1.4, 200)
angle = torch.linspace(0, 6.2832, 200)
cases = [  # the curve of unit vectors, x, e, where the labels go; time is drawn upwards
    ("x² + y²", QuadraticForm.euclidean(2), (angle.cos(), angle.sin()), (0.6, 0.8), (1.0, 0.0), (0.05, 0.07)),
    ("t² − x²", QuadraticForm.minkowski(2), (s.cosh(), s.sinh()), (1.25, 0.75), (1.0, 0.0), (-0.5, -0.62)),
]
for axis, (title, form, curve, x, e, place) in zip(axes, cases):
    across, up = (1, 0) if form.signature.negative else (0, 1)
    x, e = (torch.tensor(v, dtype=torch.float64) for v in (x, e))
    assert torch.allclose(align_unit(x, e, form.matrix) @ x, e)
    axis.plot(curve[across], curve[up], color="0.7")
    for name, v, colour, (dx, dy) in (
        ("x", x, "C0", (0.05, 0.05)),
        ("e = W x", e, "C3", place),
        ("w = x − e", x - e, "0.4", (0.05, 0.05)),
    ):
        tip = v[across].item(), v[up].item()
        axis.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
        axis.text(tip[0] + dx, tip[1] + dy, name, color=colour, fontsize=12)
    axis.set(title=title, aspect="equal", xlim=(-1.3, 1.9), ylim=(-0.4, 2.0) if up == 0 else (-1.15, 1.25))
