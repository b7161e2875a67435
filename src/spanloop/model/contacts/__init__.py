"""Contacts of a model: pairs of shapes that can touch, their candidates and numbers, and the checks of both."""

from spanloop.model.contacts.contact import PAIRS, Contact, ContactSide, contact_content

__all__ = ["PAIRS", "Contact", "ContactSide", "contact_content"]
