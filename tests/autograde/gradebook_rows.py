"""The rows of a gradebook, for comparing two."""

import sqlite3
from pathlib import Path


def rows(gradebook: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a gradebook holds about each student, without the ids."""
    who = """join submitted_notebook n on x.notebook_id = n.id
        join submitted_assignment a on n.assignment_id = a.id join base_cell c on x.cell_id = c.id
        order by student_id, c.name, c.type"""
    query = {
        "grade": f"""select student_id, c.name, c.type, auto_score, manual_score, extra_credit,
            needs_manual_grade from grade x {who}""",
        "comment": f"""select student_id, c.name, c.type, auto_comment, manual_comment
            from comment x {who}""",
        "submission": """select student_id, assignment.name, notebook.name, extension, flagged
            from submitted_assignment a join submitted_notebook n on n.assignment_id = a.id
            join notebook on n.notebook_id = notebook.id
            join assignment on a.assignment_id = assignment.id order by student_id""",
        "student": "select id, first_name, last_name, email, lms_user_id from student order by id",
    }
    with sqlite3.connect(gradebook) as book:
        return {table: book.execute(text).fetchall() for table, text in query.items()}
