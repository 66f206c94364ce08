// The families' patterns, in Ruby's dialect as their tokenizer.json files have them, and the names that ask for them.
#include "core/text/tokenizer_pre_names.hpp"

#include <algorithm>

namespace cairn {

namespace {

constexpr std::string_view kGpt2 = R"~('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kLlama3 =
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)~"
    R"~(|\s*[\r\n]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kQwen2 =
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)~"
    R"~(|\s+(?!\S)|\s+)~";
constexpr std::string_view kQwen35 =
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)~"
    R"~(|\s*[\r\n]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kAnyDigits =
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)~"
    R"~(|\s+(?!\S)|\s+)~";
constexpr std::string_view kNoContractions =
    R"~([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kSeedCoder =
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+)~"
    R"~(|\s+(?!\S)|\s+)~";
constexpr std::string_view kBailing =
    R"~('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n])~"
    R"~(|\s+(?!\S)|\s+)~";
constexpr std::string_view kExaoneMoe =
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N})~"
    R"~(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)~";
constexpr std::string_view kJais2 =
    R"~((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)~"
    R"~(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S))~"
    R"~(|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})~";
constexpr std::string_view kTekken =
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)~"
    R"~(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N})~"
    R"~(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kGpt4o =
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m)~"
    R"~(|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re)~"
    R"~(|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kYoutu =
    R"~([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m)~"
    R"~(|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re)~"
    R"~(|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kKimiK2 =
    R"~([\p{Han}]+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll})~"
    R"~(\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)~"
    R"~(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm})~"
    R"~(\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)~"
    R"~(|\s+(?!\S)|\s+)~";
constexpr std::string_view kDeepseekV3 =
    R"~([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)~"
    R"~(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)~";
constexpr std::string_view kSpark =
    R"~([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)~"
    R"~(| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)~";
constexpr std::string_view kLatinWords =
    R"~(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-)~"
    R"~(\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-)~"
    R"~(\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-)~"
    R"~(\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77})~"
    R"~(\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-)~"
    R"~(\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe})~"
    R"~(\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-)~"
    R"~(\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124})~"
    R"~(\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149})~"
    R"~(\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3})~"
    R"~(\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-)~"
    R"~(\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f})~"
    R"~(\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})~"
    R"~(\x{1e900}-\x{1e943}]+)~";
constexpr std::string_view kWidePunctuation =
    R"~(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)~";
constexpr std::string_view kCjkRun = R"~([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)~";
constexpr std::string_view kAsianRun =
    R"~([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{309f}\x{30a0}-\x{30ff}\x{ff65}-)~"
    R"~(\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f})~"
    R"~(\x{aa60}-\x{aa7f}\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)~";
constexpr std::string_view kBloom = R"~( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)~";
constexpr std::string_view kCjkBlocks = R"~([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)~";
constexpr std::string_view kYoutuCjk =
    R"~([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+)~"
    R"~(|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\)~"
    R"~(x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)~";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDigitRun = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kThreeAscii = "[0-9][0-9][0-9]";
constexpr std::string_view kLineEnd = R"([\r\n])";
constexpr std::string_view kLines = R"([^\n]+|[\n]+)";
constexpr std::string_view kLetters = R"(\s?\p{L}+)";
constexpr std::string_view kPunctuation = R"(\s?\p{P}+)";
constexpr std::string_view kTrailingSpace = R"(\s+$)";
constexpr std::string_view kSymbols = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view kFalconSymbols = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr std::string_view kGroupCuts = R"((?=(\d{3})+(?!\d)))";
constexpr std::string_view kGroupsBeforeBoundary = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kSentinel = "<sentinel:[0-9]+>";
constexpr std::string_view kImage = "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z";
constexpr std::string_view kIndent = R"(([\t\n]|    |  ))";
constexpr std::string_view kOnePunctuation = R"([\p{P}!-/:-@\[-`{-~])";
constexpr std::string_view kDefaultList[] = {kSymbols, kGpt2, kDigitRun, kThreeAscii};
constexpr std::string_view kLlama3List[] = {kLlama3};
constexpr std::string_view kJais2List[] = {kJais2};
constexpr std::string_view kDeepseekLlmList[] = {kLineEnd,       kLatinWords, kWidePunctuation,
                                                 kTrailingSpace, kCjkRun,     kDigitRun};
constexpr std::string_view kDeepseekV3List[] = {kThreeDigits, kCjkBlocks, kDeepseekV3};
constexpr std::string_view kSparkList[] = {kThreeDigits, kCjkBlocks, kSpark, kDigit};
constexpr std::string_view kYoutuList[] = {kYoutuCjk, kYoutu};
constexpr std::string_view kDeepseekCoderList[] = {kLineEnd, kLetters, kPunctuation, kCjkRun, kDigit};
constexpr std::string_view kFalconList[] = {kFalconSymbols, kGpt2, kThreeAscii};
constexpr std::string_view kStarcoderList[] = {kDigit, kGpt2};
constexpr std::string_view kGpt2List[] = {kGpt2};
constexpr std::string_view kQwen2List[] = {kQwen2};
constexpr std::string_view kQwen35List[] = {kQwen35};
constexpr std::string_view kBloomList[] = {kBloom};
constexpr std::string_view kVikingList[] = {kBloom, kDigit};
constexpr std::string_view kTekkenList[] = {kTekken};
constexpr std::string_view kChameleonList[] = {kSentinel, kImage, kIndent, kDigit, kOnePunctuation, kGpt2};
constexpr std::string_view kGpt4oList[] = {kGpt4o};
constexpr std::string_view kKimiK2List[] = {kKimiK2};
constexpr std::string_view kSuperBpeList[] = {kDigitRun, kGroupCuts};
constexpr std::string_view kTinyAyaList[] = {kGroupsBeforeBoundary, kGpt4o};
constexpr std::string_view kBailingList[] = {kBailing};
constexpr std::string_view kSeedCoderList[] = {kSeedCoder};
constexpr std::string_view kNoContractionsList[] = {kNoContractions};
constexpr std::string_view kAfmoeList[] = {kAsianRun, kDeepseekV3};
constexpr std::string_view kLagunaList[] = {kLines, kQwen2};
constexpr std::string_view kExaoneMoeList[] = {kExaoneMoe};
constexpr std::string_view kLinesList[] = {kLines};
constexpr std::string_view kMiniCpm5List[] = {kThreeDigits, kAnyDigits};

struct Named {
  std::string_view name;
  PreTokenizerFamily family;
};

// Sorted by name.
constexpr Named kFamilies[] = {
    {"a.x-4.0", {.patterns = kGpt2List}},
    {"afmoe", {.patterns = kAfmoeList, .digit_groups = true}},
    {"bailingmoe", {.patterns = kBailingList}},
    {"bailingmoe2", {.patterns = kBailingList}},
    {"bloom", {.patterns = kBloomList}},
    {"chameleon", {.patterns = kChameleonList, .add_bos = true}},
    {"chatglm-bpe", {.patterns = kLlama3List}},
    {"codeshell", {.patterns = kStarcoderList}},
    {"cohere2moe", {.patterns = kTinyAyaList}},
    {"command-r", {.patterns = kStarcoderList}},
    {"dbrx", {.patterns = kLlama3List}},
    {"deepseek-coder", {.patterns = kDeepseekCoderList}},
    {"deepseek-llm", {.patterns = kDeepseekLlmList}},
    {"deepseek-r1-qwen", {.patterns = kQwen2List}},
    {"deepseek-v3", {.patterns = kDeepseekV3List}},
    {"default", {.patterns = kDefaultList}},
    {"exaone", {.patterns = kStarcoderList}},
    {"exaone-moe", {.patterns = kExaoneMoeList}},
    {"exaone4", {.patterns = kGpt2List}},
    {"f2llmv2", {.patterns = kQwen2List}},
    {"falcon", {.patterns = kFalconList}},
    {"falcon-h1", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"falcon3", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"gemma", {.patterns = kLinesList, .metaspace = true}},
    {"gemma4", {.patterns = kLinesList, .add_bos = true, .metaspace = true}},
    {"gigachat", {.patterns = kGpt2List}},
    {"glm4", {.patterns = kLlama3List, .ignore_merges = true}},
    {"glm5", {.patterns = kLlama3List, .ignore_merges = true}},
    {"gpt-2", {.patterns = kGpt2List}},
    {"gpt-4o", {.patterns = kGpt4oList}},
    {"gpt3-finnish", {.patterns = kBloomList}},
    {"granite", {.patterns = kGpt2List}},
    {"granite-docling", {.patterns = kGpt2List}},
    {"granite-embed-multi-311m", {.patterns = kLinesList, .metaspace = true}},
    {"granite-embed-multi-97m", {.patterns = kGpt4oList, .ignore_merges = true}},
    {"grok-2", {.patterns = kQwen2List}},
    {"hunyuan", {.patterns = kQwen2List}},
    {"hunyuan-dense", {.patterns = kDeepseekV3List}},
    {"hy_v4", {.patterns = kDeepseekV3List}},
    {"jais", {.patterns = kGpt2List}},
    {"jais-2", {.patterns = kJais2List}},
    {"jina-de", {.patterns = kGpt2List}},
    {"jina-es", {.patterns = kGpt2List}},
    {"jina-v1-en", {.patterns = kGpt2List, .add_sep = true}},
    {"jina-v2-code", {.patterns = kGpt2List, .add_sep = true, .mask_lstrip = true}},
    {"jina-v2-de", {.patterns = kGpt2List, .mask_lstrip = true}},
    {"jina-v2-es", {.patterns = kGpt2List, .mask_lstrip = true}},
    {"jina-v5-nano", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"joyai-llm", {.patterns = kDeepseekV3List}},
    {"kanana2", {.patterns = kGpt4oList}},
    {"kimi-k2", {.patterns = kKimiK2List}},
    {"kormo", {.patterns = kQwen2List}},
    {"laguna", {.patterns = kLagunaList}},
    {"lfm2", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"llada-moe", {.patterns = kBailingList}},
    {"llama-bpe", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"llama-v3", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"llama3", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"llama4", {.patterns = kGpt4oList}},
    {"megrez", {.patterns = kQwen2List, .nfc = true}},
    {"mellum", {.patterns = kGpt2List}},
    {"mellum2", {.patterns = kStarcoderList}},
    {"midm-2.0", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"minerva", {.patterns = kStarcoderList}},
    {"minerva-7b", {.patterns = kStarcoderList}},
    {"minicpm5", {.patterns = kMiniCpm5List, .ignore_merges = true}},
    {"minimax-m2", {.patterns = kGpt4oList}},
    {"modern-bert", {.patterns = kGpt2List, .mask_lstrip = true}},
    {"mpt", {.patterns = kGpt2List, .nfc = true}},
    {"olmo", {.patterns = kGpt2List, .nfc = true}},
    {"phi-2", {.patterns = kGpt2List}},
    {"pixtral", {.patterns = kLlama3List, .ignore_merges = true, .add_bos = true}},
    {"poro-chat", {.patterns = kBloomList}},
    {"qwen2", {.patterns = kQwen2List, .nfc = true}},
    {"qwen35", {.patterns = kQwen35List, .nfc = true}},
    {"refact", {.patterns = kStarcoderList}},
    {"roberta-bpe", {.patterns = kGpt2List, .add_sep = true}},
    {"sarvam-moe", {.patterns = kLinesList, .metaspace = true}},
    {"seed-coder", {.patterns = kSeedCoderList}},
    {"smaug-bpe", {.patterns = kLlama3List}},
    {"smollm", {.patterns = kStarcoderList}},
    {"solar-open", {.patterns = kQwen2List}},
    {"spark2_5", {.patterns = kSparkList}},
    {"stablelm2", {.patterns = kQwen2List}},
    {"starcoder", {.patterns = kStarcoderList}},
    {"superbpe", {.patterns = kSuperBpeList}},
    {"talkie", {.patterns = kGpt4oList}},
    {"tekken", {.patterns = kTekkenList, .ignore_merges = true, .add_bos = true}},
    {"tiny_aya", {.patterns = kTinyAyaList}},
    {"trillion", {.patterns = kGpt2List}},
    {"ufakzeka", {.patterns = kNoContractionsList}},
    {"viking", {.patterns = kVikingList}},
    {"youtu", {.patterns = kYoutuList, .ignore_merges = true}},
};

}  // namespace

const PreTokenizerFamily* find_pre_tokenizer_family(std::string_view name) {
  const auto* end = std::end(kFamilies);
  const auto* it = std::lower_bound(std::begin(kFamilies), end, name,
                                    [](const Named& n, std::string_view wanted) { return n.name < wanted; });
  return it != end && it->name == name ? &it->family : nullptr;
}

std::string known_pre_tokenizer_names() {
  std::string out;
  for (const Named& n : kFamilies) {
    if (!out.empty()) out += ", ";
    out += n.name;
  }
  return out;
}

}  // namespace cairn
