"""Checks of the values of a study file by type annotations, with pydantic.

The declarations of a plugin or a section of the file (``Annotated[float, Quantity("N/m", ge=0)]``, dataclasses,
TypedDicts) are converted once to annotations of pydantic (`values.adapt_annotation`): leaves become validators of this
package, because numbers have units and files are read. Pydantic traverses lists, mappings and records, keeps the path
of each error, and makes the JSON Schema from the same annotations; leaves define their own, and `words.JsonKeywords`
adds to one.

Errors of this package pass through pydantic as a `Finding`, a sentence with a position; those of pydantic are converted
(`refusals.findings`). Four checks replace pydantic's, to get one finding per mistake:

- unknown and missing keys (`values.table`): the message suggests the nearest key, and a misspelt key is not also
  reported as missing;
- unions (`values._union`): the message lists the expected types, or the error in the intended member;
- tuples of a fixed length: the required number of values;
- valid parts beside a mistake (`values.check`): a second traversal replaces invalid parts by None, so that later checks
  find other mistakes of the same file.
"""
