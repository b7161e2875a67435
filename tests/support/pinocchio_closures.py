"""Pinocchio's answers for closed mechanisms: ball joints as point contacts, fixed ones as rigid contacts."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from pinocchio_peer import Peer

_CONTACTS = {"spherical": pin.ContactType.CONTACT_3D, "fixed": pin.ContactType.CONTACT_6D}


class ClosedPeer(Peer):
    """Pinocchio's model of ours with its loops, if it `knows` them."""

    def __init__(self, model):
        super().__init__(model)
        self.contacts = pin.StdVec_RigidConstraintModel()
        for loop in model.loops:
            ends = (*self._end(loop.a, loop.placement_a), *self._end(loop.b, loop.placement_b))
            kind = _CONTACTS[loop.kind.name]
            self.contacts.append(pin.RigidConstraintModel(kind, self.model, *ends, pin.ReferenceFrame.LOCAL))

    @staticmethod
    def knows(model) -> bool:
        """Has Pinocchio a contact for every loop?"""
        return all(loop.kind.name in _CONTACTS for loop in model.loops)

    def closed_forward_dynamics(self, q, v, tau):
        """Accelerations by the proximal solver; without its settings it gives no number on redundant rows."""
        data, contacts = self.model.createData(), pin.StdVec_RigidConstraintData()
        for contact in self.contacts:
            contacts.append(contact.createData())
        pin.initConstraintDynamics(self.model, data, self.contacts, contacts)
        state = self.order.q_to(q), self.order.v_to(v), self.order.v_to(tau)
        settings = pin.ProximalSettings(1e-13, 1e-10, 50)
        a = pin.constraintDynamics(self.model, data, *state, self.contacts, contacts, settings)
        return self.order.v_from(np.array(a))

    def _end(self, body, placement):
        number, here = self.place[body]
        return number, here * pin.SE3(np.array(placement.rotation), np.array(placement.position))
