"""Values of a study file checked by type annotations, which pydantic walks.

What a plugin or a section of the file declares (``Annotated[float, Quantity("N/m", ge=0)]``, dataclasses, TypedDicts)
is rewritten once into annotations of pydantic (`values.adapted`): leaves become validators of ours, for numbers have
units and files are read. Pydantic walks lists, mappings and records, keeps the path of each error, and makes the JSON
Schema from the same annotations; only leaves state theirs, and `words.JsonKeywords` adds to one.

Errors of ours travel through pydantic as a `Finding`, a sentence with a place; those of pydantic become one
(`refusals.findings`). Four things are not left to pydantic, each for one finding per mistake:

- unknown and missing keys (`values.table`): the nearest known key is offered, and a key that is missing because it was
  misspelt is not said to be missing as well;
- unions (`values._union`): the sentence names all that was expected, or what is wrong in the member that was meant;
- tuples of a fixed length: how many values are needed;
- what is sound beside a mistake (`values.check`): a second walk puts None in the place of what is wrong, so that later
  checks find other mistakes of the same file.
"""
