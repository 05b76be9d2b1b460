"""OpenSeq2Seq's config files, run as they are: ``docs/openseq2seq.md``.

``recognize`` tells such a file. ``load`` runs it among stand-ins for the modules it
imports (``modules``, ``symbols``), translates its dicts (``translate``,
``translation``, ``section``, ``rules``) by tables (``tables``: experiment, values,
text2text), and returns a native ``Config``. ``source`` writes a config as a native
file. What a new family of models needs is rows in tables.
"""
