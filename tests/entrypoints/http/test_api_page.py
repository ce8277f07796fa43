"""Is the page of the API what the document says, and never more than text?"""

from hansa.entrypoints.http import api_page


def test_words_are_words() -> None:
    nasty = "<script>alert(1)</script>\"'&"
    document = {
        "info": {"title": nasty, "version": nasty, "description": nasty},
        "paths": {
            f"/{nasty}": {
                "get": {
                    "tags": [nasty],
                    "summary": nasty,
                    "description": nasty,
                    "security": [{nasty: []}, {}],
                    "parameters": [{"name": nasty, "in": "query", "description": nasty}],
                    "requestBody": {"content": {nasty: {"example": nasty}}},
                    "responses": {"200": {"description": nasty, "content": {nasty: {"schema": {"x": nasty}}}}},
                }
            }
        },
    }
    page = api_page.render(document)
    assert "<script" not in page
    assert page.count("&lt;script") > 10
