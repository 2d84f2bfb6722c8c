"""Python operators that come with Samovar. Their modules' source is the code of the operators that stand for them."""
