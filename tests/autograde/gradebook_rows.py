"""The rows of a gradebook, for comparing two."""

from pathlib import Path

from sqlalchemy import create_engine, text


def rows(gradebook: Path | str) -> dict[str, list[tuple[object, ...]]]:
    """What a gradebook, by its file or its URL, holds about each student, without the ids."""
    who = """join submitted_notebook n on x.notebook_id = n.id
        join submitted_assignment a on n.assignment_id = a.id join base_cell c on x.cell_id = c.id
        order by student_id, c.name, c.type"""
    query = {
        "grade": f"""select student_id, c.name, c.type, auto_score, manual_score, extra_credit,
            needs_manual_grade from grade x {who}""",
        "comment": f"""select student_id, c.name, c.type, auto_comment, manual_comment
            from comment x {who}""",
        "submission": """select student_id, assignment.name, notebook.name, extension, flagged,
            timestamp from submitted_assignment a
            join submitted_notebook n on n.assignment_id = a.id
            join notebook on n.notebook_id = notebook.id
            join assignment on a.assignment_id = assignment.id order by student_id""",
        "student": "select id, first_name, last_name, email, lms_user_id from student order by id",
    }
    url = f"sqlite:///{gradebook}" if isinstance(gradebook, Path) else gradebook
    engine = create_engine(url)
    with engine.connect() as book:
        found = {name: [tuple(r) for r in book.execute(text(q))] for name, q in query.items()}
    engine.dispose()
    return found
