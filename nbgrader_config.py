"""nbgrader's settings for this course: `nbgrader ...` and `autograde ...` both read this file."""

from pathlib import Path

root = Path(__file__).resolve().parent
classroom = root / "classroom"
classroom.mkdir(exist_ok=True)  # sqlite makes a missing file, not a missing folder

c = get_config()  # noqa: F821 - nbgrader puts it here

c.CourseDirectory.course_id = "pretraining-objectives"
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "build/source"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.solution_directory = "solutions"
c.CourseDirectory.submitted_directory = "classroom/submitted"
c.CourseDirectory.autograded_directory = "classroom/graded"
c.CourseDirectory.feedback_directory = "classroom/feedback"
c.CourseDirectory.db_url = f"sqlite:///{classroom / 'gradebook.db'}"

# an untouched answer is None or Ellipsis, which a check can tell from a wrong one
c.ClearSolutions.code_stub = {"python": "...  # YOUR CODE HERE"}

# `nbgrader autograde` and the button in formgrader grade as `autograde grade` does
c.Autograde.exporter_class = "autograde.nbgrader_plugin.GradingExporter"
c.Autograde.pre_convert_hook = "autograde.nbgrader_plugin.expect_the_notebook"
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = ["nbgrader.preprocessors.AssignLatePenalties"]

# `nbgrader generate_feedback` and formgrader's button write the pages of `autograde feedback`
c.GenerateFeedback.exporter_class = "autograde.nbgrader_plugin.FeedbackExporter"

# kernels keep no history, and are silent about the local sockets they talk over
c.Execute.extra_arguments = ["--HistoryManager.hist_file=:memory:", "--IPKernelApp.log_level=40"]
