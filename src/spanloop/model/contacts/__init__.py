"""Contacts of a model: pairs of shapes that can touch, their candidates and numbers, and the checks of both."""

from spanloop.model.contacts.contact import PAIRS, SETTINGS, Contact, ContactSide, contact_content

__all__ = ["PAIRS", "SETTINGS", "Contact", "ContactSide", "contact_content"]
