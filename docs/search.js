// The search takes each word of a question for the beginning of a word, so "I" finds "install" and "a" finds "attestations".
// Words without a meaning of their own are left out of the question.
const NOISE = new Set(
  "a an and any are as at be by can do does for from have how i if in is it its me my no not of on or so that the there this to too was what when where which who why will with you your".split(" "),
);
const QUERY = 2;
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (message?.type === QUERY && typeof message.data === "string") {
    const words = message.data.split(/\s+/).filter((word) => !NOISE.has(word.toLowerCase()));
    if (words.length > 0) message = { ...message, data: words.join(" ") };
  }
  return post.call(this, message, ...rest);
};
