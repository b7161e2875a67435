"""Kreutz & Rodriguez: forward dynamics of several arms that hold one object; grasps."""
