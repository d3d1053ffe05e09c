"""HTML → the main text of a page."""

from __future__ import annotations

import re


class NoContent(Exception):
    def __init__(self, reason): super().__init__(reason); self.reason=reason

_C=re.compile("[\x00-\x08\x0e-\x1f\ufffe\uffff]+")
def clean(html):
    html=_C.sub("",html)
    html=re.sub(r"</?wbr\s*/?>","",html,flags=re.IGNORECASE)
    head,rest=html[:4096],html[4096:]
    head=re.sub(r"<!doctype[^>]*>","",head,count=1,flags=re.IGNORECASE)
    head=re.sub(r"(<html\b[^>]*?)\s*/>",r"\1>",head,count=1,flags=re.IGNORECASE)
    return head+rest
def parse(html):
    import lxml.html
    P=lxml.html.HTMLParser(collect_ids=False, default_doctype=False, encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    return lxml.html.document_fromstring(html.encode("utf-8","replace"),parser=P)
