"""A network that works in other coordinates than its caller's: exactly equivariant in both (M18)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import as_form_module
from gortho.skew import SkewForm


class InFrame(nn.Module):
    """f(x) = u ρ(W⁻¹) net(Wx/v): a network trained on z = Wx/v, with targets in units of u, for the caller's own x.

    Several outputs may have a unit for each entry.

    One unit v for all of x commutes with every linear map, so W and its inverse stay of order one for x of any size.
    If the network respects O(A) in z, this one respects O(WᵀAW) in x. Weights work where all directions are alike,
    whatever the units of x and y are. Vectors of several kinds may have a W each, ``(p, n, n)``.
    """

    def __init__(
        self,
        net: EquivariantNet,
        W: Tensor,
        unit: float | Tensor = 1.0,
        form: QuadraticForm | SkewForm | None = None,
        x_unit: float = 1.0,
    ):
        super().__init__()
        self.net = net
        own = W
        if W.ndim == 3:  # that of the vectors which the output moves with
            assert net.broken is not None
            own = W[net.broken.first, : net.n, : net.n]
        A = own.mT @ net.form.matrix().detach().double() @ own
        if form is None:
            form = SkewForm(A) if isinstance(net.form.value(), SkewForm) else QuadraticForm(A)
        #: The form in the caller's coordinates.
        self.form = as_form_module(form)
        self.register_buffer("W", W.clone())
        self.register_buffer("back", torch.linalg.inv(own))
        #: What odd outputs are turned by; a number, as ONNX has no determinant.
        self.handed = float(torch.linalg.det(own).sign())
        self.register_buffer("unit", torch.as_tensor(unit, dtype=torch.float64))
        self.register_buffer("x_unit", torch.as_tensor(x_unit, dtype=torch.float64))
        self.rep, self.n, self.points, self.set_like = net.rep, net.n, net.points, net.set_like
        self.n_in = W.shape[-1]
        self.point_scalars, self.sample_scalars = net.point_scalars, net.sample_scalars
        self.double().eval()

    W: Tensor
    back: Tensor
    unit: Tensor
    x_unit: Tensor

    @property
    def x_scale(self) -> Tensor:
        """The network's unit of x, whose dtype and device are those of the inputs to give."""
        return self.net.x_scale

    def forward(
        self, x: Tensor, point_scalars: Tensor | None = None, sample_scalars: Tensor | None = None
    ) -> Tensor:
        """Predict for ``x (batch, p, n)``, or ``(batch, n)`` with one point."""
        x = x / self.x_unit
        z = x @ self.W.mT if self.W.ndim == 2 else (x[:, :, None] @ self.W.mT)[:, :, 0]
        y = self.net(z, point_scalars, sample_scalars)
        back = self.back.expand(y.shape[0], -1, -1)
        pieces = [
            (self.handed if part.odd else 1.0) * (part.even.act_unchecked(back, v) if part.rank else v)
            for part, v in zip(self.rep.parts, self.rep.split(y, self.n))
        ]
        return self.unit * self.rep.join(pieces)
