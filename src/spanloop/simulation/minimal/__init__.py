"""Closed mechanisms in the coordinates of their actuated joints. [Saha, section 3]"""
