"""The layer check itself: each rule has an include that breaks it and one that does not."""

import pathlib
import tempfile
import unittest

import check_layers


def findings(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return check_layers.check(root)


class CheckLayers(unittest.TestCase):
    def test_allowed_includes_pass(self):
        self.assertEqual(findings({
            "plugin_api/include/cairn/abi.h": "#include <stdint.h>\n",
            "plugin_api/include/cairn/node.hpp": '#include "cairn/abi.h"\n#include <vector>\n',
            "kernels/cpu/a.cpp": '#include "kernels/cpu/a.hpp"\n#include <immintrin.h>\n#include <sys/mman.h>\n',
            "core/a/a.cpp": '#include "core/a/b.hpp"\n#include "cairn/abi.h"\n#include "kernels/cpu/a.hpp"\n#include <fmt/format.h>\n',
            "host/a.cpp": '#include "core/a/b.hpp"\n#include "host/b.hpp"\n#include <boost/beast/http.hpp>\n',
            "plugins/llama/a.cpp": '#include <cairn/node.hpp>\n#include "plugins/llama/b.hpp"\n#include "b.hpp"\n',
        }), [])

    def test_each_rule_is_enforced(self):
        for path, include in {
            "plugin_api/include/cairn/a.hpp": '"core/base/error.hpp"',
            "plugin_api/include/cairn/b.hpp": "<fmt/format.h>",
            "kernels/cpu/a.cpp": '"core/base/error.hpp"',
            "kernels/cpu/b.cpp": '"cairn/abi.h"',
            "kernels/cpu/c.cpp": "<fmt/format.h>",
            "core/a/a.cpp": '"host/b.hpp"',
            "core/a/b.cpp": "<boost/beast/core.hpp>",
            "core/a/c.cpp": "<boost/asio.hpp>",
            "core/a/d.cpp": "<cairn/node.hpp>",
            "core/a/e.cpp": "<torch/torch.h>",
            "host/a.cpp": '"plugins/llama/a.hpp"',
            "host/b.cpp": "<cairn/node.hpp>",
            "plugins/llama/a.cpp": '"core/base/error.hpp"',
            "plugins/llama/b.cpp": '"plugins/echo/a.hpp"',
            "plugins/llama/c.cpp": "<spdlog/spdlog.h>",
            "plugins/llama/d.cpp": '"../../core/base/error.hpp"',
        }.items():
            self.assertEqual(len(findings({path: f"// x\n#include {include}\n"})), 1, f"{path} {include}")

    def test_the_place_is_named(self):
        self.assertEqual(findings({"core/a.cpp": '\n#include "host/b.hpp"\n'}),
                         ['core/a.cpp:2: #include "host/b.hpp" - core depends on cairn/abi.h and kernels only'])


if __name__ == "__main__":
    unittest.main()
