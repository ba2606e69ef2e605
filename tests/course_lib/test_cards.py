import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.teaching.cards import HAND, LEVELS, _load, _path, _save, after, cards, deck, draw

TODAY = date.today().toordinal()
ALL = deck(LEVELS[-1])
schedules = st.dictionaries(
    st.sampled_from([card.id for card in ALL]), st.tuples(st.integers(0, 9), st.integers(0, 200))
)


class TestDeck:
    def test_there_are_the_seventeen_of_the_notes_and_as_many_of_the_courses_own(self):
        assert len(ALL) >= 17 + 15

    def test_every_card_says_a_level_and_asks_something_of_its_own(self):
        assert {card.level for card in ALL} <= set(LEVELS)
        assert len({card.question for card in ALL}) == len(ALL)
        assert all(card.question.endswith(("?", ".")) and card.answer for card in ALL)

    @pytest.mark.parametrize("level", LEVELS[1:])
    def test_a_level_asks_only_for_what_came_before_it(self, level):
        earlier = LEVELS[: LEVELS.index(level)]
        assert {card.level for card in deck(level)} == set(earlier)

    def test_the_primer_asks_for_what_it_teaches(self):
        assert {card.level for card in deck("primer")} == {"primer"}

    def test_new_cards_of_all_earlier_levels_take_turns_the_latest_first(self):
        levels = [card.level for card in deck("level3")][:6]
        assert levels == ["level2", "level1", "primer"] * 2

    def test_a_level_that_is_none_is_named_with_those_there_are(self):
        with pytest.raises(ValueError, match=r"'level9'.*level1"):
            deck("level9")


class TestSchedule:
    @settings(deadline=None, max_examples=50)
    @given(schedule=schedules, level=st.sampled_from(LEVELS))
    def test_there_are_always_five_different_cards_and_none_waits_behind_one_less_due(
        self, schedule, level
    ):
        known, today = deck(level), 100
        hand = draw(known, schedule, today)
        assert len({card.id for card in hand}) == HAND
        due = [schedule[c.id][1] for c in known if schedule.get(c.id, (0, 999))[1] <= today]
        shown = [schedule[c.id][1] for c in hand if schedule.get(c.id, (0, 999))[1] <= today]
        assert shown == sorted(due)[:HAND]

    def test_new_cards_come_before_those_that_rest(self):
        known = deck("level1")
        schedule = {card.id: (1, 200) for card in known[:-1]}
        assert draw(known, schedule, today=100)[0] == known[-1]

    def test_the_rest_doubles_each_time_a_card_is_known(self):
        times, day, rests = 0, 100, []
        for _ in range(5):
            times, due = after(True, times, day)
            rests.append(due - day)
            day = due
        assert rests == [1, 2, 4, 8, 16]

    def test_a_card_that_was_not_known_comes_back_at_once_and_starts_over(self):
        assert after(False, 7, 100) == (0, 100)
        assert after(True, 0, 100) == (1, 101)

    def test_no_rest_is_endless(self):
        assert after(True, 10**9, 0)[1] < 1000


class TestFile:
    @pytest.mark.parametrize(
        "text",
        [b"", b"{", b"[]", b"3", b"\xff\xfe", b'{"a": 3}', b'{"a": ["x", 1]}', b'{"a": [1]}'],
    )
    def test_a_broken_file_is_a_fresh_start(self, tmp_path, text):
        (tmp_path / "cards").write_bytes(text)
        assert _load(tmp_path / "cards") == {}

    def test_one_broken_entry_costs_only_itself(self, tmp_path):
        (tmp_path / "cards").write_text('{"a": [true, 1], "b": [2, 5], "c": [-1, 5]}', "utf-8")
        assert _load(tmp_path / "cards") == {"b": (2, 5)}

    def test_a_place_that_cant_be_read_or_written_is_no_error(self, tmp_path):
        assert _load(tmp_path) == {}
        _save(tmp_path, {"a": (1, 2)})
        assert _load(tmp_path / "nowhere" / "cards") == {}

    def test_all_levels_share_one_file(self, tmp_path, monkeypatch):
        for level in ("level1", "level2"):
            (tmp_path / level).mkdir()
            monkeypatch.chdir(tmp_path / level)
            assert _path() == tmp_path / ".cards.json"
        monkeypatch.chdir(tmp_path)
        assert _path() == tmp_path / ".cards.json"


class TestShown:
    @pytest.fixture(autouse=True)
    def here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_what_a_saved_notebook_keeps_does_not_depend_on_the_schedule(self, here):
        fresh = cards("level3").page
        ids = [card.id for card in deck("level3")]
        (here / ".cards.json").write_text(json.dumps({id: [3, TODAY + 9] for id in ids[:9]}))
        assert cards("level3").page == fresh
        bundle = cards("level3")._repr_mimebundle_()
        assert (bundle["text/html"], bundle["text/plain"]) == (fresh.html, fresh.text)
        assert fresh.html.count("<details>") == HAND

    def test_showing_prints_nothing_and_writes_nothing(self, here, capfd):
        cards("level2")._repr_mimebundle_()
        assert capfd.readouterr() == ("", "")
        assert list(here.iterdir()) == []

    def test_the_widget_shows_the_answer_on_request_and_remembers_what_was_known(self, here):
        face, back, buttons = cards("level2").widget().children
        first, second = deck("level2")[:2]
        assert first.question in face.value
        assert back.value == ""
        (show,) = buttons.children
        show.click()
        assert back.value.startswith("<p>")
        knew, _ = buttons.children
        knew.click()
        assert second.question in face.value
        assert _load(here / ".cards.json") == {first.id: (1, TODAY + 1)}
        show.click()
        _, not_yet = buttons.children
        not_yet.click()
        assert _load(here / ".cards.json")[second.id] == (0, TODAY)

    def test_after_five_cards_the_widget_is_done(self):
        face, _, buttons = cards("level1").widget().children
        for _ in range(HAND):
            assert "all for now" not in face.value
            buttons.children[0].click()  # show the answer
            buttons.children[0].click()  # known
        assert "all for now" in face.value
        assert buttons.children == ()

    def test_the_next_notebook_asks_for_what_was_not_known(self):
        _, _, buttons = cards("level1").widget().children
        buttons.children[0].click()
        buttons.children[1].click()  # not yet
        face, _, _ = cards("level1").widget().children
        assert deck("level1")[0].question in face.value
