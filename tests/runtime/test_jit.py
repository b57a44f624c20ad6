"""LLVM text to addresses: correct code, one compile per text and machine, clear errors."""

import ctypes
import os
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest
from tgraph.runtime import cache, jit, llvm

SCALE = """
define void @scale(ptr noalias %x, ptr noalias %out, float %f, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %out, i64 %i
  %a = load float, ptr %p
  %b = fmul float %a, %f
  store float %b, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def call(address, result, *arguments):
    return ctypes.CFUNCTYPE(result, *[kind for kind, _ in arguments])(address)(
        *[value for _, value in arguments]
    )


def run_scale(module, n=1001):
    x = np.arange(n, dtype=np.float32)
    out = np.zeros_like(x)
    pointer = ctypes.c_void_p
    arrays = [(pointer, x.ctypes.data), (pointer, out.ctypes.data)]
    call(module.address("scale"), None, *arrays, (ctypes.c_float, 3), (ctypes.c_int64, n))
    return x, out


def test_no_module_is_compiled_at_a_higher_level_than_the_highest(monkeypatch):
    text = SCALE.replace("scale", "at_levels")
    shipped = jit.compile_module(text)
    monkeypatch.setattr(jit, "highest_level", 1)
    assert jit.compile_module(text) is jit.compile_module(text, opt=1) is not shipped
    own = jit.Source(text, own=True)
    assert jit.compile_modules([own]) == jit.compile_modules([own]) != [jit.compile_module(text)]
    monkeypatch.undo()
    assert jit.compile_module(text) is shipped


@pytest.mark.parametrize("options", [{}, {"unroll": True}, {"opt": 0}, {"opt": 1}, {"opt": 2}])
def test_compiled_code_computes(options):
    x, out = run_scale(jit.compile_module(SCALE, **options))
    np.testing.assert_array_equal(out, 3 * x)


def test_same_text_gives_the_same_module():
    text = SCALE + "; once\n"
    before = jit.statistics()
    assert jit.compile_module(text) is jit.compile_module(text)
    after = jit.statistics()
    assert after["compiled"] == before["compiled"] + 1
    assert after["modules"] == before["modules"] + 1


def test_modules_may_define_the_same_name():
    values = []
    for value in (1, 2, 3):
        module = jit.compile_module(f"define i64 @value() {{\n  ret i64 {value}\n}}\n")
        values.append(call(module.address("value"), ctypes.c_int64))
    assert values == [1, 2, 3]


def test_several_functions_and_internal_ones():
    module = jit.compile_module("""
define internal i64 @hidden(i64 %x) {
  %y = mul i64 %x, 7
  ret i64 %y
}
define i64 @a(i64 %x) { %y = call i64 @hidden(i64 %x) ret i64 %y }
define dso_local noundef i64 @"b.2"(i64 %x) { %y = add i64 %x, 1 ret i64 %y }
""")
    assert call(module.address("a"), ctypes.c_int64, (ctypes.c_int64, 6)) == 42
    assert call(module.address("b.2"), ctypes.c_int64, (ctypes.c_int64, 6)) == 7
    with pytest.raises(KeyError, match=r"no function 'hidden'; it defines a, b\.2"):
        module.address("hidden")


def test_calls_libm():
    module = jit.compile_module("""
declare double @cosh(double)
define double @f(double %x) { %y = call double @cosh(double %x) ret double %y }
""")
    assert call(module.address("f"), ctypes.c_double, (ctypes.c_double, 1)) == np.cosh(1.0)


def test_half_conversion_finds_its_helper():
    module = jit.compile_module("""
define float @f(double %x) {
  %h = fptrunc double %x to half
  %y = fpext half %h to float
  ret float %y
}
""")
    value = 1.00048828125 + 1e-12  # just above the middle: a detour over float32 rounds down
    got = call(module.address("f"), ctypes.c_float, (ctypes.c_double, value))
    assert got == np.float16(value)


def test_calls_registered_symbols():
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x + 100)
    jit.add_symbol("tgraph_test_callback", ctypes.cast(callback, ctypes.c_void_p).value)
    module = jit.compile_module("""
declare i64 @tgraph_test_callback(i64)
define i64 @f(i64 %x) { %y = call i64 @tgraph_test_callback(i64 %x) ret i64 %y }
""")
    assert call(module.address("f"), ctypes.c_int64, (ctypes.c_int64, 11)) == 111


def test_asks_for_the_address_of_a_symbol_once():
    callback, asked = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: 7), []

    def load():
        asked.append("tgraph_test_lazy")
        return ctypes.cast(callback, ctypes.c_void_p).value

    jit.add_symbol("tgraph_test_lazy", load)
    assert not asked
    for name in ("f", "g"):
        text = f"""
declare i64 @tgraph_test_lazy()
define i64 @{name}() {{ %y = call i64 @tgraph_test_lazy() ret i64 %y }}
"""
        assert call(jit.compile_module(text).address(name), ctypes.c_int64) == 7
    assert len(asked) == 1


def test_late_functions_are_inlined_and_part_of_the_key():
    text = """
declare i64 @tgraph_test_late(i64)
define i64 @f(i64 %x) { %y = call i64 @tgraph_test_late(i64 %x) ret i64 %y }
"""
    for more in (1, 2):
        late = f"""
define available_externally i64 @tgraph_test_late(i64 %x) alwaysinline {{
  %y = add i64 %x, {more}
  ret i64 %y
}}
"""
        for opt in (0, 3):
            module = jit.compile_module(text, late=late, opt=opt)
            assert call(module.address("f"), ctypes.c_int64, (ctypes.c_int64, 11)) == 11 + more


def test_unknown_function_is_an_error_that_names_it():
    text = "declare void @nowhere()\ndefine void @f() { call void @nowhere() ret void }\n"
    for _ in range(2):
        with pytest.raises(jit.JitError, match="it calls nowhere"):
            jit.compile_module(text)


def test_rejected_text_is_an_error_that_shows_it():
    with pytest.raises(jit.JitError, match=r"error: expected(.|\n)*1  define void @f\( \{"):
        jit.compile_module("define void @f( {\n}\n")
    with pytest.raises(jit.JitError, match="LLVM rejects"):
        jit.compile_module("define i32 @f(i64 %x) {\n  ret i32 %x\n}\n")


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2]])
def test_damaged_object_is_rebuilt(folder, monkeypatch, damage):
    text = SCALE + f"; damaged {damage(b'1234')!r}\n"
    monkeypatch.setattr(jit, "_modules", {})
    jit.compile_module(text)
    (path,) = folder.glob("*.bin")
    path.write_bytes(damage(path.read_bytes()))
    jit._modules.clear()
    before = jit.statistics()["compiled"]
    x, out = run_scale(jit.compile_module(text))
    assert jit.statistics()["compiled"] == before + 1
    np.testing.assert_array_equal(out, 3 * x)


def test_options_and_host_are_part_of_the_key(folder):
    text = SCALE + "; keyed\n"
    jit.compile_module(text)
    jit.compile_module(text, unroll=True)
    jit.compile_module(text, opt=1)
    assert len(list(folder.glob("*.bin"))) == 3


CHILD = """
import sys
from tgraph.runtime import jit
assert "llvmlite" not in sys.modules
jit.compile_module(open(sys.argv[1]).read())
print(jit.statistics()["compiled"], jit.statistics()["from_disk"])
"""


CHILD_OF_A_CPU = """
import sys
from tgraph.runtime import jit, llvm
jit.compile_module(open(sys.argv[1]).read())
text = "define <32 x i8> @f(<32 x i8> %x) { %y = add <32 x i8> %x, %x ret <32 x i8> %y }"
print(jit.statistics()["compiled"], jit.vector_bytes(), end=" ")
with llvm.Module(text, jit._compiler().target) as module:
    print(b"ymm" in module.emit(assembly=True))
"""

X86 = platform.machine() in ("x86_64", "AMD64")


@pytest.mark.skipif(not X86, reason="levels are those of x86-64")
@pytest.mark.parametrize(
    ("level", "size", "wide"),
    [("x86-64", "16", "False"), ("x86-64-v2", "16", "False"), ("x86-64-v3", "32", "True")],
)
def test_the_environment_names_the_processor_to_compile_for(tmp_path, level, size, wide):
    if level not in jit.supported_levels():
        pytest.skip(f"this machine is not {level}")
    text = tmp_path / "text"
    text.write_text(SCALE)
    command = [sys.executable, "-c", CHILD_OF_A_CPU, str(text)]
    for env, compiled in (({}, "1"), ({"TGRAPH_CPU": level}, "1"), ({"TGRAPH_CPU": level}, "0")):
        clean = {name: value for name, value in os.environ.items() if name != "TGRAPH_CPU"}
        found = subprocess.run(
            command, env={**clean, **env}, check=True, capture_output=True, text=True
        ).stdout.split()
        assert found[0] == compiled
    assert found[1:] == [size, wide]


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("haswell", r"TGRAPH_CPU: expected a level of this machine \(x86-64.*\), got 'haswell'"),
        ("x86-64-v9", "TGRAPH_CPU: .* got 'x86-64-v9'"),
    ],
)
def test_a_processor_that_is_none_is_an_error(monkeypatch, level, message):
    monkeypatch.setenv("TGRAPH_CPU", level)
    with pytest.raises(ValueError, match=message if X86 else "TGRAPH_CPU: "):
        jit._Compiler()


@pytest.mark.skipif(not X86, reason="levels are those of x86-64")
def test_a_processor_that_this_machine_is_not_is_an_error(monkeypatch):
    """Its code would end the process by an illegal instruction."""
    features = llvm.host_features()
    monkeypatch.setattr(llvm, "host_features", lambda: features)
    assert "x86-64" in jit.supported_levels()
    features["fma"] = False
    assert not {"x86-64-v3", "x86-64-v4"} & set(jit.supported_levels())
    monkeypatch.setenv("TGRAPH_CPU", "x86-64-v3")
    with pytest.raises(ValueError, match="got 'x86-64-v3'"):
        jit._Compiler()


def test_second_process_starts_warm(tmp_path):
    text = tmp_path / "text"
    text.write_text(SCALE)
    results = [
        subprocess.run(
            [sys.executable, "-c", CHILD, str(text)], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert results == [["1", "0"], ["0", "1"]]


def test_threads_share_one_compile():
    text = SCALE + "; threads\n"
    before = jit.statistics()["compiled"]
    modules = []
    threads = [
        threading.Thread(target=lambda: modules.append(jit.compile_module(text))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(module) for module in modules}) == 1 and len(modules) == 8
    assert jit.statistics()["compiled"] == before + 1


def numbered(number):
    """A text of its own for each number, which gives it back."""
    return f"define i64 @value() {{\n  ret i64 {number}\n}}\n"


def test_several_modules_at_once_are_each_compiled_once():
    before = jit.statistics()
    sources = [jit.Source(numbered(100 + at % 20)) for at in range(40)]
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(jit.compile_modules(sources)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(each == results[0] for each in results)
    values = [call(each.address("value"), ctypes.c_int64) for each in results[0]]
    assert values == [100 + at % 20 for at in range(40)]
    after = jit.statistics()
    assert after["compiled"] == before["compiled"] + 20
    assert after["modules"] == before["modules"] + 20


def test_one_bad_module_among_several_is_the_error():
    good = jit.Source(numbered(200))
    with pytest.raises(jit.JitError, match="LLVM rejects"):
        jit.compile_modules([good, jit.Source("define i64 @value() {")])
    (module,) = jit.compile_modules([good])
    assert call(module.address("value"), ctypes.c_int64) == 200


def test_an_object_that_could_not_be_made_is_tried_again(monkeypatch):
    def refuse(size, what):
        raise MemoryError(what)

    text = numbered(201)
    with monkeypatch.context() as patch:
        patch.setattr(jit.memory, "require", refuse)
        jit.make_objects([jit.Source(text)])
    assert jit.Source(text) not in jit._objects
    assert call(jit.compile_module(text).address("value"), ctypes.c_int64) == 201


def test_objects_are_made_while_another_thread_has_the_lock():
    """What is begun early must not wait for who compiles something else."""
    jit.compile_module(numbered(202))  # LLVM is there
    source = jit.Source(numbered(203))
    done = threading.Event()
    with jit.locks.RUNTIME:
        thread = threading.Thread(target=lambda: (jit.make_objects([source]), done.set()))
        thread.start()
        assert done.wait(60)
    thread.join()
    before = jit.statistics()
    jit.compile_modules([source])
    after = jit.statistics()
    assert after["compiled"] == before["compiled"] + 1
    assert source not in jit._objects


def test_who_holds_the_lock_compiles_several_modules():
    jit.compile_module(numbered(204))
    with jit.locks.RUNTIME:
        modules = jit.compile_modules([jit.Source(numbered(at)) for at in range(205, 211)])
    assert [call(each.address("value"), ctypes.c_int64) for each in modules] == [*range(205, 211)]


def test_what_was_begun_is_compiled_once(folder):
    sources = [jit.Source(numbered(at)) for at in range(211, 215)]
    before = jit.statistics()["compiled"]
    for each in [*sources, *sources]:
        jit.begin(each)
    jit.compile_modules(sources)
    assert jit.statistics()["compiled"] == before + 4
    assert len(list(folder.glob("*.bin"))) == 4


def test_what_was_begun_is_found_on_disk(monkeypatch):
    source = jit.Source(numbered(215))
    jit.compile_modules([source])
    monkeypatch.setattr(jit, "_modules", {})
    before = jit.statistics()
    jit.begin(source)
    (module,) = jit.compile_modules([source])
    assert call(module.address("value"), ctypes.c_int64) == 215
    after = jit.statistics()
    assert after["from_disk"] == before["from_disk"] + 1
    assert after["compiled"] == before["compiled"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_waits_for_what_is_being_compiled():
    """Its child would wait for ever: for the object, or for a lock within LLVM."""
    texts = [SCALE + f"; fork {number}\n" for number in range(12)]
    maker = threading.Thread(target=lambda: jit.make_objects(map(jit.Source, texts)))
    maker.start()
    children = []
    for number in (0, 5, 11):
        child = os.fork()
        if child == 0:
            try:
                x, out = run_scale(jit.compile_module(texts[number]))
                os._exit(0 if np.array_equal(out, 3 * x) else 1)
            finally:
                os._exit(2)
        children.append(child)
    maker.join()
    assert [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children] == [0, 0, 0]


def test_functions_of_the_library_are_those_that_llvmlite_declares():
    """They are called by our own prototypes: another version may have changed them."""
    assert llvm.unknown_prototypes() == []


def test_long_functions_of_llvm_alone_let_other_threads_run_python() -> None:
    """A thread that has let others run Python waits for its turn each time."""
    library = llvm.library()
    kept = ctypes.PyDLL(None)._func_flags_
    holds = {name for name in llvm.PROTOTYPES if getattr(library, name)._flags_ == kept}
    assert holds == llvm.PROTOTYPES.keys() - llvm.LONG
    assert llvm.PROTOTYPES.keys() > llvm.LONG


def test_another_version_of_the_library_is_compared(monkeypatch):
    monkeypatch.setattr(llvm, "version", lambda: "9.1.0")
    llvm.library.__wrapped__()
    monkeypatch.setitem(llvm.PROTOTYPES, "ContextDispose", (ctypes.c_int, (ctypes.c_int,)))
    assert llvm.unknown_prototypes() == ["ContextDispose"]
    with pytest.raises(ImportError, match=r"llvmlite 9\.1\.0 has .* not know: ContextDispose"):
        llvm.library.__wrapped__()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_child_of_a_fork_compiles():
    run_scale(jit.compile_module(SCALE))
    child = os.fork()
    if child == 0:
        try:
            x, out = run_scale(jit.compile_module(SCALE + "; in the child\n"))
            os._exit(0 if np.array_equal(out, 3 * x) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_without_a_disk_cache(monkeypatch):
    monkeypatch.setenv("TGRAPH_CACHE_DIR", "")
    x, out = run_scale(jit.compile_module(SCALE + "; no disk\n"))
    np.testing.assert_array_equal(out, 3 * x)
    assert cache.folder() is None


def test_a_pass_builder_serves_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What LLVM keeps of a builder grows with every module that the builder has seen."""
    library = llvm.library()
    calls: list[str] = []

    def noted(name: str) -> None:
        function = getattr(library, name)

        def call(*arguments: object) -> object:
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(library, name, call)

    made, run, gone = "CreatePassBuilder", "RunNewModulePassManager", "DisposePassBuilder"
    for name in (made, run, gone):
        noted(name)
    for number in range(3):
        jit.compile_module(SCALE.replace("fmul float %a, %f", f"fadd float %a, {number}.5"), opt=1)
    assert calls == [made, run, gone] * 3


def test_what_was_left_half_made_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by an exception right behind the entry in the table, for which all others would wait."""
    text = "define i64 @left_half_made() {\nentry:\n  ret i64 7\n}"
    source = jit.Source(text)
    monkeypatch.setitem(jit._objects, source, jit._Object())
    found: list[jit.Module] = []
    thread = threading.Thread(
        target=lambda: found.append(jit.compile_module(text)), daemon=True, name="waits"
    )
    thread.start()
    thread.join(60)
    assert found and found[0].address("left_half_made")
